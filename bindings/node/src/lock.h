/* A lock of the operating system, the one thing here that Node-API has no word for. */
#ifndef FAWN_NODE_LOCK_H
#define FAWN_NODE_LOCK_H

#ifdef _WIN32
#include <windows.h>
typedef SRWLOCK lock;
static inline void lock_init(lock *l) { InitializeSRWLock(l); }
static inline void lock_destroy(lock *l) { (void)l; }
static inline void lock_take(lock *l) { AcquireSRWLockExclusive(l); }
static inline void lock_give(lock *l) { ReleaseSRWLockExclusive(l); }
#else
#include <pthread.h>
typedef pthread_mutex_t lock;
static inline void lock_init(lock *l) { (void)pthread_mutex_init(l, NULL); }
static inline void lock_destroy(lock *l) { (void)pthread_mutex_destroy(l); }
static inline void lock_take(lock *l) { (void)pthread_mutex_lock(l); }
static inline void lock_give(lock *l) { (void)pthread_mutex_unlock(l); }
#endif

#endif
