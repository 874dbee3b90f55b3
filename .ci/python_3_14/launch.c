/* The command bin/python3.14: runs bin/python3.14.bin beside it with lib/main.so preloaded, and passes on the name by which it was
   called, which may be a link of a virtual environment. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROOM = 2 * PATH_MAX };

static void cut_last_part(char *path) {
    char *slash = strrchr(path, '/');
    if (slash) *slash = 0;
}

/* The path of the program as it was called: absolute. */
static void find_called(const char *name, char called[ROOM]) {
    char folder[PATH_MAX];
    if (name[0] == '/') {
        snprintf(called, ROOM, "%s", name);
        return;
    }
    if (strchr(name, '/')) {
        snprintf(called, ROOM, "%s/%s", getcwd(folder, sizeof folder) ? folder : "", name);
        return;
    }
    char *path = strdup(getenv("PATH") ? getenv("PATH") : ""), *rest = path, *each;
    while (path && (each = strsep(&rest, ":"))) {
        snprintf(called, ROOM, "%s/%s", each, name);
        if (access(called, X_OK) == 0) break;
        called[0] = 0;
    }
    free(path);
}

static void put(const char *name, const char *value) {
    if (value && *value) setenv(name, value, 1);
    else unsetenv(name);
}

int main(int argc, char **argv) {
    char home[PATH_MAX], called[ROOM] = "", text[ROOM + 64], folder[ROOM];
    const char *preload = getenv("LD_PRELOAD");
    ssize_t size = readlink("/proc/self/exe", home, sizeof home - 1);
    if (size < 0 || argc < 1) return 127;
    home[size] = 0;
    find_called(argv[0], called);
    if (!called[0]) snprintf(called, sizeof called, "%s", home);
    cut_last_part(home), cut_last_part(home);
    snprintf(folder, sizeof folder, "%s", called);
    cut_last_part(folder);
    snprintf(text, sizeof text, "%s/../pyvenv.cfg", folder);
    put("PYTHON_3_14_HOME", access(text, R_OK) == 0 ? "" : home);
    put("PYTHON_3_14_CALLED", called);
    put("PYTHON_3_14_PRELOAD", preload);
    snprintf(text, sizeof text, "%s%s%s/lib/main.so", preload ? preload : "", preload ? ":" : "", home); /* a sanitizer comes first */
    put("LD_PRELOAD", text);
    snprintf(text, sizeof text, "%s/bin/python3.14.bin", home);
    execv(text, argv);
    perror(text);
    return 127;
}
