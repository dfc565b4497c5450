// SPDX-License-Identifier: BSD-2-Clause
/*
 * The end of a key while a peer copies through it: the owner's side of the lab, and a second
 * connection object on the same segment which announces copies as a peer does. Only keys whose
 * memory a peer was given are announced without a fence, and only those cost a barrier at the end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/fence.h"
#include "lab.h"
#include "soft/key.h"
#include "soft/shm/state.h"
#include "soft/shm/connect/revoke.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/transfer/direct.h"

#define ROUNDS 8000u
#define ROUNDS_LEAST 64u      /* on a machine that is too busy for all of them */
#define ROUNDS_NS 5000000000u /* how long more are made */
#define USES 10u	      /* of each key at least */
#define READS 200u
#define COLD (32u * 1024 * 1024)
#define LINES 8u
#define ENOUGH 1000u /* announcements after which a connection goes without fences, if it may */
#define ALL (SOFT_RIGHT_REMOTE_READ | SOFT_RIGHT_REMOTE_WRITE)

static unsigned barriers;

void __real_core_fence_heavy(enum core_fence_scope scope);
void __wrap_core_fence_heavy(enum core_fence_scope scope);
void __wrap_core_fence_heavy(enum core_fence_scope scope)
{
	barriers++;
	__real_core_fence_heavy(scope);
}

/* The owner frees a key while it is given to a peer: just before, or just after the mark. */
static enum { NEVER, BEFORE, BEHIND } freed;

bool __real_soft_keys_give(struct soft_keys *keys, uint32_t key);
bool __wrap_soft_keys_give(struct soft_keys *keys, uint32_t key);
bool __wrap_soft_keys_give(struct soft_keys *keys, uint32_t key)
{
	bool is_given;

	if (freed == BEFORE)
		soft_keys_invalidate(keys, key);
	is_given = __real_soft_keys_give(keys, key);
	if (freed == BEHIND)
		soft_keys_invalidate(keys, key);
	return is_given;
}

struct stage {
	struct lab *lab;
	struct shm_conn *far; /* the peer's end */
	struct shm_map map;   /* stands for a mapping of the memory there */
	uint8_t *file;	      /* memory that can be mapped, LAB_MEMORY bytes */
	int fd;
	/* for the stress test; the fields of the next key are stored before `key` */
	_Atomic uint32_t key;
	_Atomic bool is_mapped;
	_Atomic bool is_live;
	_Atomic bool is_over;
	_Atomic uint32_t uses;
	_Atomic uint32_t violations;
	uint8_t *cold; /* more than the caches hold */
};

static struct stage *stage;

static int open_stage(uint64_t peer_timeout_ms)
{
	stage = calloc(1, sizeof(*stage));
	assert_non_null(stage);
	stage->lab = lab_open(
		&(struct lab_form){.copy = CORE_COPY_AUTO, .peer_timeout_ms = peer_timeout_ms});
	stage->far = lab_make_far(stage->lab);
	stage->fd = memfd_create("revoke", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(stage->fd, LAB_MEMORY), 0);
	assert_int_equal(fcntl(stage->fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	stage->file = mmap(NULL, LAB_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, stage->fd, 0);
	assert_ptr_not_equal(stage->file, MAP_FAILED);
	freed = NEVER;
	return 0;
}

/* The peer may not run for a while. */
static int setup(void **state)
{
	(void)state;
	return open_stage(60000);
}

static int setup_brief(void **state)
{
	(void)state;
	return open_stage(50);
}

static int teardown(void **state)
{
	(void)state;
	shm_conn_put(stage->far);
	lab_close(stage->lab);
	munmap(stage->file, LAB_MEMORY);
	close(stage->fd);
	free(stage);
	return 0;
}

static uint32_t add_with(const void *memory, uint32_t rights)
{
	struct lab *lab = stage->lab;
	uint32_t key;

	assert_int_equal(soft_keys_add(lab->adapter.keys, (uintptr_t)memory, LAB_MEMORY, rights,
				       lab->pz.id, &key),
			 0);
	return key;
}

static uint32_t add(const void *memory)
{
	return add_with(memory, ALL);
}

/* As dat_lmr_free does. */
static void revoke_key(uint32_t key)
{
	struct lab *lab = stage->lab;

	soft_keys_invalidate(lab->adapter.keys, key);
	shm_engine_wait_key(lab->engine, key);
}

static void end(uint32_t key)
{
	revoke_key(key);
	shm_map_key_dead(stage->lab->engine, key);
	soft_keys_release(stage->lab->adapter.keys, key);
}

/* The type of the packet that our side has sent since the last call; 0: none. */
static unsigned packet(void)
{
	uint8_t bytes[sizeof(union shm_wire)];
	struct shm_wire_head head;

	if (recv(stage->lab->peer_fd, bytes, sizeof(bytes), MSG_DONTWAIT) <= 0)
		return 0;
	memcpy(&head, bytes, sizeof(head));
	return head.type;
}

/* --- what costs a barrier --- */

/* COMPAT-47: although the peer omits the fence where it may. */
static void wait_key__not_given__no_barrier(void **state)
{
	uint32_t key = add(stage->lab->memory);

	(void)state;
	atomic_store(&stage->lab->peer->is_unfenced, 1);
	barriers = 0;
	end(key);
	assert_int_equal(barriers, 0);
	atomic_store(&stage->lab->peer->is_unfenced, 0);
}

/* LMR-FREE-07 */
static void wait_key__given__barrier_if_a_peer_passes_no_fence(void **state)
{
	(void)state;
	for (uint32_t is_unfenced = 0; is_unfenced < 2; is_unfenced++) {
		uint32_t key = add(stage->lab->memory);

		assert_true(soft_keys_give(stage->lab->adapter.keys, key));
		atomic_store(&stage->lab->peer->is_unfenced, is_unfenced);
		barriers = 0;
		end(key);
		assert_int_equal(barriers, is_unfenced);
	}
	atomic_store(&stage->lab->peer->is_unfenced, 0);
}

/* RMR-FREE-14: the same for a window, at each call. */
static void is_key_in_use__given__barrier_if_a_peer_passes_no_fence(void **state)
{
	struct soft_keys *keys = stage->lab->adapter.keys;
	uint32_t key = add(stage->lab->memory);

	(void)state;
	atomic_store(&stage->lab->peer->is_unfenced, 1);
	soft_keys_invalidate(keys, key);
	barriers = 0;
	assert_false(shm_engine_is_key_in_use(stage->lab->engine, key));
	assert_int_equal(barriers, 0);
	soft_keys_activate(keys, key);
	assert_true(soft_keys_give(keys, key));
	soft_keys_invalidate(keys, key);
	assert_false(shm_engine_is_key_in_use(stage->lab->engine, key));
	assert_int_equal(barriers, 1);
	soft_keys_release(keys, key);
	atomic_store(&stage->lab->peer->is_unfenced, 0);
}

/* --- a peer that is stopped in the middle of a copy --- */

/* A dead key that the peer still announces. */
static uint32_t stalled_key(void)
{
	uint32_t key = add(stage->lab->memory);

	atomic_store(&stage->lab->peer->announce, key);
	soft_keys_invalidate(stage->lab->adapter.keys, key);
	return key;
}

static bool is_gate_closed(void)
{
	return atomic_load(&stage->lab->own->revoked) != 0;
}

/* RMR-FREE-14 LMR-FREE-21: it cannot use the connection any more, so the connection ends. */
static void is_key_in_use__peer_continues_behind_the_closed_gate__connection_ends(void **state)
{
	struct lab *lab = stage->lab;
	uint32_t key = stalled_key();

	(void)state;
	while (!is_gate_closed())
		assert_true(shm_engine_is_key_in_use(lab->engine, key));
	atomic_store(&lab->peer->announce, 0);
	assert_false(shm_engine_is_key_in_use(lab->engine, key));
	soft_keys_release(lab->adapter.keys, key);
	shm_service_pending(lab->engine);
	assert_int_equal(lab->end, DAT_CONNECTION_EVENT_BROKEN);
}

/* RMR-FREE-14 LMR-FREE-21: the bind waits for a while behind the gate, not for the peer. */
static void is_key_in_use__peer_stays_stopped__connection_ends(void **state)
{
	struct lab *lab = stage->lab;
	uint32_t key = stalled_key();

	(void)state;
	while (shm_engine_is_key_in_use(lab->engine, key))
		sched_yield();
	assert_true(is_gate_closed());
	soft_keys_release(lab->adapter.keys, key);
	shm_service_pending(lab->engine);
	assert_int_equal(lab->end, DAT_CONNECTION_EVENT_BROKEN);
}

/* --- the peer --- */

static int announce(const struct shm_map *map, uint32_t key)
{
	return shm_announce(stage->far, map, key, SOFT_RIGHT_REMOTE_WRITE,
			    (uintptr_t)stage->lab->memory, 8);
}

/* The owner can see that fences are omitted before the first such announcement. */
static void announce__mapped_memory__says_that_it_passes_no_fence(void **state)
{
	uint32_t key = add(stage->lab->memory);

	(void)state;
	if (!core_fence_is_supported(CORE_FENCE_HOST))
		skip(); /* a kernel or a sandbox without membarrier */
	assert_int_equal(atomic_load(&stage->lab->peer->is_unfenced), 0);
	assert_int_equal(announce(&stage->map, key), 0);
	assert_int_equal(atomic_load(&stage->lab->peer->is_unfenced), 1);
	shm_announce_end(stage->far);
	end(key);
}

/* Copies by the kernel always use a fence. */
static void announce__memory_not_mapped__never_goes_without(void **state)
{
	uint32_t key = add(stage->lab->memory);

	(void)state;
	for (unsigned copies = 0; copies < ENOUGH; copies++) {
		assert_int_equal(announce(NULL, key), 0);
		shm_announce_end(stage->far);
	}
	assert_int_equal(atomic_load(&stage->lab->peer->is_unfenced), 0);
	end(key);
}

/* --- the mark --- */

static void map_asked__memory_of_a_sealed_file__given_and_marked(void **state)
{
	struct lab *lab = stage->lab;
	uint32_t key = add(stage->file);

	(void)state;
	shm_map_asked(lab->conn, key);
	assert_int_equal(packet(), SHM_WIRE_MAP_GIVE);
	assert_true(soft_keys_is_given(lab->adapter.keys, key));
	assert_true(shm_map_is_given(lab->conn, key));
	end(key);
	assert_int_equal(packet(), SHM_WIRE_KEY_GONE);
	assert_false(shm_map_is_given(lab->conn, key));
}

static void map_asked__memory_that_cannot_be_given__refused_and_not_marked(void **state)
{
	struct lab *lab = stage->lab;
	uint32_t key = add(lab->memory);

	(void)state;
	shm_map_asked(lab->conn, key);
	assert_int_equal(packet(), SHM_WIRE_MAP_REFUSE);
	assert_false(soft_keys_is_given(lab->adapter.keys, key));
	end(key);
	shm_map_asked(lab->conn, key);
	assert_int_equal(packet(), SHM_WIRE_MAP_REFUSE);
	assert_int_equal(packet(), 0);
}

/* LMR-CREATE-38: memory without a remote right is only for our own requests */
static void map_asked__no_remote_right__refused_and_not_marked(void **state)
{
	struct lab *lab = stage->lab;
	uint32_t key = add_with(stage->file, 0);

	(void)state;
	shm_map_asked(lab->conn, key);
	assert_int_equal(packet(), SHM_WIRE_MAP_REFUSE);
	assert_false(soft_keys_is_given(lab->adapter.keys, key));
	assert_false(shm_map_is_given(lab->conn, key));
	end(key);
	assert_int_equal(packet(), 0);
}

/* LMR-FREE-07: the thread that frees the key sees the mark, or the peer does not get the memory. */
static void map_asked__freed_meanwhile__not_given(void **state)
{
	struct lab *lab = stage->lab;

	(void)state;
	for (freed = BEFORE; freed <= BEHIND; freed++) {
		uint32_t key = add(stage->file);

		shm_map_asked(lab->conn, key);
		assert_int_equal(packet(), SHM_WIRE_MAP_REFUSE);
		assert_false(shm_map_is_given(lab->conn, key));
		soft_keys_release(lab->adapter.keys, key);
	}
}

/* --- both at once --- */

/* Stores to lines that are in no cache: they delay the stores behind them. */
static void delay_stores(uint32_t *seed)
{
	for (unsigned i = 0; i < LINES; i++) {
		*seed = *seed * 1664525u + 1013904223u;
		__atomic_store_n(&stage->cold[*seed % COLD], 1, __ATOMIC_RELAXED);
	}
}

/* Copies through the current key: an announced key that was found live must stay live. */
static void *copy(void *unused)
{
	uint32_t dead = 0, seed = 1;

	while (!atomic_load(&stage->is_over)) {
		uint32_t key = atomic_load(&stage->key);
		bool is_mapped = atomic_load(&stage->is_mapped);

		if (key == dead) {
			sched_yield();
			continue;
		}
		delay_stores(&seed);
		if (!announce(is_mapped ? &stage->map : NULL, key)) {
			for (unsigned i = 0; i < READS; i++)
				/* relaxed: the announcement keeps the key live */
				if (!atomic_load_explicit(&stage->is_live, memory_order_relaxed))
					atomic_fetch_add(&stage->violations, 1);
			atomic_fetch_add(&stage->uses, 1);
		} else {
			dead = key;
		}
		shm_announce_end(stage->far);
	}
	return unused;
}

/* LMR-FREE-07 LMR-FREE-21 COMPAT-47: a peer copies as fast as it can, every other key without a
 * fence. */
static void wait_key__peer_copies__does_not_afterwards(void **state)
{
	struct soft_keys *keys = stage->lab->adapter.keys;
	uint64_t end_ns;
	pthread_t peer;

	(void)state;
	stage->cold = mmap(NULL, COLD, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	assert_ptr_not_equal(stage->cold, MAP_FAILED);
	assert_int_equal(pthread_create(&peer, NULL, copy, NULL), 0);
	end_ns = core_now_ns() + ROUNDS_NS;
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint32_t key = add(stage->lab->memory);

		if (round % 2)
			assert_true(soft_keys_give(keys, key));
		atomic_store(&stage->is_mapped, round % 2);
		atomic_store(&stage->is_live, true);
		atomic_store(&stage->uses, 0);
		atomic_store(&stage->key, key);
		for (unsigned spins = 1; atomic_load(&stage->uses) < USES + round % 7; spins++)
			if (spins % 1024 == 0)
				sched_yield();
		for (unsigned spins = 0; spins < round * 37 % 512; spins++)
			atomic_signal_fence(memory_order_seq_cst); /* at any point of a copy */
		revoke_key(key);
		atomic_store(&stage->is_live, false);
		soft_keys_release(keys, key);
		if (round >= ROUNDS_LEAST && core_now_ns() > end_ns)
			break;
	}
	atomic_store(&stage->is_over, true);
	pthread_join(peer, NULL);
	munmap(stage->cold, COLD);
	assert_int_equal(atomic_load(&stage->violations), 0);
	assert_int_equal(atomic_load(&stage->lab->peer->is_unfenced),
			 core_fence_is_supported(CORE_FENCE_HOST));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define BRIEF(f) cmocka_unit_test_setup_teardown(f, setup_brief, teardown)
	const struct CMUnitTest tests[] = {
		TEST(wait_key__not_given__no_barrier),
		TEST(wait_key__given__barrier_if_a_peer_passes_no_fence),
		TEST(is_key_in_use__given__barrier_if_a_peer_passes_no_fence),
		BRIEF(is_key_in_use__peer_continues_behind_the_closed_gate__connection_ends),
		BRIEF(is_key_in_use__peer_stays_stopped__connection_ends),
		TEST(announce__mapped_memory__says_that_it_passes_no_fence),
		TEST(announce__memory_not_mapped__never_goes_without),
		TEST(map_asked__memory_of_a_sealed_file__given_and_marked),
		TEST(map_asked__memory_that_cannot_be_given__refused_and_not_marked),
		TEST(map_asked__no_remote_right__refused_and_not_marked),
		TEST(map_asked__freed_meanwhile__not_given),
		TEST(wait_key__peer_copies__does_not_afterwards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
