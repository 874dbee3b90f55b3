/* Every allocation of a test program passes here (linked with --wrap): counted, measured, and made to fail on request. */
#ifndef OTEL_ASYNCPROF_ALLOCATIONS_H
#define OTEL_ASYNCPROF_ALLOCATIONS_H

#include <stddef.h>

extern size_t allocations;            /* calls so far */
extern size_t allocated_bytes;        /* live */
extern size_t peak_allocated_bytes;   /* the most that was live, a moved block counted twice while it is moved */
extern size_t allocations_until_fail; /* that many succeed, then all fail */

#endif
