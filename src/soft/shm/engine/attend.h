/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread of the consumer that waits for an event of a connection attends to the sockets itself
 * while it spins: the answer of a peer then costs no thread switch instead of two.
 *
 * The sockets of all connections and listeners are in one epoll set, and that set is in the epoll
 * set of the service thread. While a thread attends, the second set does not report the first, so
 * that nothing wakes the service thread for what the other thread finds. Both serve a socket in the
 * same way, with `service_lock` held.
 *
 * The thread may lose its processor, or run a handler of a signal, while others wait for what is in
 * the sockets. So the service thread looks at them itself every few milliseconds while connections
 * change.
 */
#ifndef SHM_ATTEND_H
#define SHM_ATTEND_H

#include <stdbool.h>
#include <stdint.h>

struct shm_engine;

/* The transport's slots attend_begin, attend and attend_end. */
bool shm_attend_begin(struct shm_engine *engine);
int shm_attend(struct shm_engine *engine);
void shm_attend_end(struct shm_engine *engine);

/* How long the service thread may wait, in nanoseconds, if there is no other reason than `ns` to
 * wake up. It watches the threads that attend. */
uint64_t shm_attend_limit(struct shm_engine *engine, uint64_t ns);

#endif
