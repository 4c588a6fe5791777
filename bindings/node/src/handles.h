/* The living handles of one environment, so that its end (a worker that is terminated, say) frees what JavaScript had no
 * chance to free. Used on the environment's own thread only. */
#ifndef FAWN_NODE_HANDLES_H
#define FAWN_NODE_HANDLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a handle names. The order is the order in which the end of an environment frees them: queues first, so that no
 * wake-up comes any more, runtimes last. */
typedef enum handle_kind {
  KIND_QUEUE,
  KIND_RUN,
  KIND_THREAD,
  KIND_ASSEMBLY,
  KIND_SUBAGENTS,
  KIND_RUNTIME,
  KINDS
} handle_kind;

typedef struct handle_entry {
  uint64_t handle; /* 0: empty */
  handle_kind kind;
} handle_entry;

/* Open addressing, at most half full. */
typedef struct handle_set {
  handle_entry *entries;
  size_t size; /* a power of two, or 0 */
  size_t used;
} handle_set;

/* False: no memory. */
bool handles_add(handle_set *set, uint64_t handle, handle_kind kind);
/* Strikes a handle off and says what it names. False: it is not in the set. */
bool handles_remove(handle_set *set, uint64_t handle, handle_kind *kind);
/* Frees what a handle names, in the library. */
void handle_free(uint64_t handle, handle_kind kind);
/* Frees everything, in the library too. */
void handles_free_all(handle_set *set);

#endif
