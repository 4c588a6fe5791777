/* The set of an environment's living handles. */
#include "handles.h"

#include <fawn.h>
#include <stdlib.h>

/* Handles differ in their low bits (the slot), so a multiplication spreads them well enough. */
static size_t home_of(const handle_set *set, uint64_t handle) {
  return (size_t)((handle * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (set->size - 1);
}

static void put(handle_set *set, handle_entry entry) {
  size_t at = home_of(set, entry.handle);
  while (set->entries[at].handle != 0) at = (at + 1) & (set->size - 1);
  set->entries[at] = entry;
}

bool handles_add(handle_set *set, uint64_t handle, handle_kind kind) {
  if (2 * (set->used + 1) > set->size) {
    handle_set larger = {NULL, set->size ? 2 * set->size : 64, set->used};
    larger.entries = calloc(larger.size, sizeof *larger.entries);
    if (larger.entries == NULL) return false;
    for (size_t i = 0; i < set->size; i++) {
      if (set->entries[i].handle != 0) put(&larger, set->entries[i]);
    }
    free(set->entries);
    *set = larger;
  }
  put(set, (handle_entry){handle, kind});
  set->used++;
  return true;
}

bool handles_remove(handle_set *set, uint64_t handle, handle_kind *kind) {
  if (handle == 0 || set->used == 0) return false;
  size_t mask = set->size - 1, hole = home_of(set, handle);
  while (set->entries[hole].handle != handle) {
    if (set->entries[hole].handle == 0) return false;
    hole = (hole + 1) & mask;
  }
  *kind = set->entries[hole].kind;
  set->used--;
  /* Entries that went past the hole to find their place move back into it. */
  for (size_t at = (hole + 1) & mask; set->entries[at].handle != 0; at = (at + 1) & mask) {
    size_t home = home_of(set, set->entries[at].handle);
    if (((at - home) & mask) >= ((at - hole) & mask)) {
      set->entries[hole] = set->entries[at];
      hole = at;
    }
  }
  set->entries[hole].handle = 0;
  return true;
}

void handle_free(uint64_t handle, handle_kind kind) {
  switch (kind) {
  case KIND_QUEUE: fawn_queue_free(handle); break;
  case KIND_RUN: fawn_run_free(handle); break;
  case KIND_THREAD: fawn_thread_free(handle); break;
  case KIND_ASSEMBLY: fawn_assembly_free(handle); break;
  case KIND_SUBAGENTS: fawn_subagents_free(handle); break;
  case KIND_RUNTIME: fawn_runtime_free(handle); break;
  case KINDS: break;
  }
}

void handles_free_all(handle_set *set) {
  for (int kind = 0; kind < KINDS; kind++) {
    for (size_t i = 0; i < set->size; i++) {
      const handle_entry *entry = &set->entries[i];
      if (entry->handle != 0 && (int)entry->kind == kind) handle_free(entry->handle, entry->kind);
    }
  }
  free(set->entries);
  *set = (handle_set){NULL, 0, 0};
}
