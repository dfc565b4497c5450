// SPDX-License-Identifier: BSD-2-Clause
/*
 * A connected peer that changes shared memory while we read it. The input is a list of stores,
 * which a second thread repeats all the time, and behind it the actions of fuzz_ring
 * (peer_input.h). A value that is checked and then read a second time would let a bad one through.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "peer_input.h"
#include "soft/key.h"
#include "soft/shm/bytes/ring.h"
#include "soft/shm/bytes/segment.h"

#define STORES_MAX 32u
#define LAPS 2u /* of the stores before the actions begin */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One store, of a word or a byte; it alternates between the two values. */
struct store {
	uint8_t *at;
	uint32_t value[2];
	bool is_byte;
};

/* The second thread, which lives as long as the process. */
static struct writer {
	struct store stores[STORES_MAX];
	uint32_t count;
	atomic_bool is_started; /* set by the fuzzer: `stores` is filled */
	atomic_bool is_idle;	/* set by the thread: it does not use `stores` */
	atomic_uint laps;
} writer = {.is_idle = true};

/* The stores are meant to race: the thread sanitizer does not see them. */
__attribute__((no_sanitize("thread"))) static void run_stores(uint32_t lap)
{
	for (uint32_t i = 0; i < writer.count; i++) {
		const struct store *store = &writer.stores[i];
		uint32_t value = store->value[lap & 1];

		if (store->is_byte)
			__atomic_store_n(store->at, (uint8_t)value, __ATOMIC_RELAXED);
		else
			__atomic_store_n((uint32_t *)(void *)store->at, value, __ATOMIC_RELAXED);
	}
}

static void *writer_main(void *unused)
{
	for (;;) {
		uint32_t lap = 0;

		while (!atomic_load(&writer.is_started))
			sched_yield();
		atomic_store(&writer.is_idle, false);
		while (atomic_load(&writer.is_started)) {
			run_stores(lap++);
			atomic_fetch_add(&writer.laps, 1);
		}
		atomic_store(&writer.is_idle, true);
	}
	return unused;
}

static void start_writer(void)
{
	static bool has_thread;
	pthread_t thread;

	if (!has_thread)
		LAB_MUST(pthread_create(&thread, NULL, writer_main, NULL) == 0 &&
			 pthread_detach(thread) == 0);
	has_thread = true;
	atomic_store(&writer.laps, 0);
	atomic_store(&writer.is_started, true);
	while (atomic_load(&writer.laps) < LAPS)
		sched_yield();
}

static void stop_writer(void)
{
	atomic_store(&writer.is_started, false);
	while (!atomic_load(&writer.is_idle))
		sched_yield();
}

/* Its key, its rights and its zone can be changed by the peer at any time. */
static struct soft_key_entry *peer_key(const struct lab *lab)
{
	return (struct soft_key_entry *)(uintptr_t)soft_keys_entries(lab->peer_keys) +
	       soft_key_index(lab->peer_rkey);
}

/* A place in memory that the peer can write, in words, and a hint of what is read there. */
static uint8_t *choose_place(struct lab *lab, struct peer_input *in, uint32_t *likely)
{
	struct shm_segment *segment = lab->segment;
	uint8_t kind = peer_byte(in) % 8;
	uint32_t at = peer_byte(in);

	*likely = peer_byte(in);
	switch (kind) {
	case 0: /* the words of either side */
		return (uint8_t *)segment->side + at * 4 % sizeof(segment->side);
	case 1:
	case 2: /* the header of an entry that we read next, or its payload */
		*likely = SHM_STAMP(at / 16 * SHM_ENTRY_ALIGN);
		return segment->request[SHM_ACTIVE] + at * 4;
	case 3:
		*likely = SHM_STAMP(at / 16 * SHM_ENTRY_ALIGN);
		return segment->response[SHM_ACTIVE] + at * 4;
	case 4: /* our own entries */
		return segment->request[SHM_PASSIVE] + at * 4;
	case 5: /* the rings that those before grow into */
		*likely = SHM_STAMP(at / 16 * SHM_ENTRY_ALIGN);
		return at & 1 ? segment->request[SHM_ACTIVE] + SHM_REQUEST_RING + at * 4
			      : segment->response[SHM_ACTIVE] + SHM_RESPONSE_RING + at * 4;
	case 6: /* not its range: in the lab the memory around it is our own */
		*likely = lab->peer_rkey;
		return (uint8_t *)peer_key(lab) + at % 3 * 4;
	default:
		return lab->peer_memory + at * 4;
	}
}

static void choose_stores(struct lab *lab, struct peer_input *in)
{
	writer.count = 1 + peer_byte(in) % STORES_MAX;
	for (uint32_t i = 0; i < writer.count; i++) {
		struct store *store = &writer.stores[i];
		uint8_t how = peer_byte(in);
		uint32_t likely;

		store->at = choose_place(lab, in, &likely);
		store->is_byte = how & 1;
		if (store->is_byte)
			store->at += how >> 6;
		store->value[0] = how & 2 ? likely : peer_word(in);
		store->value[1] = how & 4 ? store->value[0] + 1 : peer_byte(in);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct peer_input in = {data, size};
	uint8_t path = peer_byte(&in);
	struct lab *lab = peer_open_lab(path);
	struct soft_key_entry *entry = peer_key(lab);
	const uint32_t rights = entry->rights, zone = entry->pz;

	choose_stores(lab, &in);
	start_writer();
	peer_run(lab, &in, path);
	stop_writer();
	atomic_store(&entry->key, lab->peer_rkey);
	entry->rights = rights;
	entry->pz = zone;
	peer_close_lab(lab);
	return 0;
}
