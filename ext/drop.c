#include "drop.h"

uint64_t drop_counts[DROP_REASONS];

const char *const drop_names[DROP_REASONS] = {
#define DROP_NAME(name, text) #name,
    DROP_REASON_LIST(DROP_NAME)
#undef DROP_NAME
};
