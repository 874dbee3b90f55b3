#include "layout.h"

#include <stddef.h>

struct layout layout;
struct anchors anchors;

const char *const anchor_names[] = {
#define ANCHOR_NAME(name) #name,
    ANCHOR_LIST(ANCHOR_NAME)
#undef ANCHOR_NAME
};
const unsigned anchor_count = sizeof anchor_names / sizeof anchor_names[0];

bool layout_select(unsigned minor) {
    const struct layout *const tables[] = {&layout_3_11, &layout_3_12, &layout_3_13, &layout_3_14, &layout_3_15};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        if (tables[i]->minor != minor) continue;
        layout = *tables[i];
        return true;
    }
    return false;
}
