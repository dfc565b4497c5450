// SPDX-License-Identifier: BSD-2-Clause
/* Threads of the consumer that sleep until a peer wakes them (sleep.c). */
#ifndef SHM_SLEEP_H
#define SHM_SLEEP_H

#include <stdbool.h>

struct core_sleep;
struct shm_conn;
struct shm_engine;

/* The transport's slots sleep_begin and sleep_end. */
void shm_sleep_begin(struct shm_engine *engine, struct core_sleep *sleep);
void shm_sleep_end(struct core_sleep *sleep);
/* Wakes a thread of the peer that sleeps on the bell of the connection; false: there is none. */
bool shm_sleep_wake(struct shm_conn *conn);

#endif
