// SPDX-License-Identifier: BSD-2-Clause
/*
 * Messages that are placed (COMPAT-46), with the real code at both ends: our side of the lab has
 * offered a Receive, and `far` sends. Something happens at our side just before the copy, or just
 * behind it: the region is freed, or the connection ends.
 */
#include "place.h"

#include <pthread.h>

#include "soft/copy.h"
#include "soft/key.h"
#include "soft/shm/connect/close.h"
#include "soft/shm/connect/ep.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/transfer/tx.h"

#define OLD 0x11 /* bytes of the Receive before the message */

/* What happens in the middle of the next message, once. */
struct event {
	void (*run)(struct lab *lab);
	bool is_behind_copy;
};

struct both {
	struct lab *lab;
	struct shm_conn *far;
	struct core_ep far_ep;
	struct core_req far_req;
	DAT_LMR_TRIPLET source;
	uint32_t key; /* of the region of the Receive */
	struct event event;
	_Atomic bool is_dead; /* the key */
	pthread_t freeing;
	bool is_announced;     /* when dat_lmr_free returned */
	uint8_t at_free[SIZE]; /* the Receive's memory at that time */
};

static struct both both;

static void run_event(bool is_behind_copy)
{
	const struct event event = both.event;

	if (!event.run || event.is_behind_copy != is_behind_copy)
		return;
	both.event.run = NULL;
	event.run(both.lab);
}

int __real_soft_copy_to_process(soft_gate *gate, pid_t pid, uint64_t address,
				const struct iovec *iov, int count, size_t len);
int __wrap_soft_copy_to_process(soft_gate *gate, pid_t pid, uint64_t address,
				const struct iovec *iov, int count, size_t len);
int __wrap_soft_copy_to_process(soft_gate *gate, pid_t pid, uint64_t address,
				const struct iovec *iov, int count, size_t len)
{
	int rc;

	run_event(false);
	rc = __real_soft_copy_to_process(gate, pid, address, iov, count, len);
	run_event(true);
	return rc;
}

/* The peer's endpoint, with one Send of SIZE bytes. */
static void make_far_end(struct lab *lab)
{
	both.far = lab_make_far(lab);
	both.far->remote.pid = getpid();
	both.far->remote.has_cma = true;
	both.far_ep = (struct core_ep){.ia = &lab->ia, .pz = &lab->pz, .cell = &lab->cell};
	both.far_ep.req = (struct core_req_queue){.slots = &both.far_req, .capacity = 1};
	both.source = (DAT_LMR_TRIPLET){.lmr_context = LAB_LOCAL_KEY,
					.virtual_address = (uintptr_t)lab->memory,
					.segment_length = SIZE};
	(void)core_req_take(&both.far_ep, CORE_OP_SEND, 0);
	core_req_clear_transport(&both.far_req);
	both.far_req.iov = &both.source;
	both.far_req.segments = 1;
	both.far_req.len = SIZE;
}

/* Our side offers its only Receive, in a region of its own. */
static int setup(void **state)
{
	struct lab *lab = lab_open(CORE_COPY_AUTO, true);

	both = (struct both){.lab = lab};
	hold(lab); /* until the test is over */
	assert_int_equal(soft_keys_add(lab->adapter.keys, (uintptr_t)lab->memory + AT, SIZE,
				       SOFT_RIGHT_LOCAL, lab->pz.id, &both.key),
			 0);
	lab->lmr->rkey = both.key;
	make_far_end(lab);
	fill(lab);
	memset(lab->memory + AT, OLD, SIZE);
	assert_true(lab_post_receive(lab, AT, SIZE));
	assert_true(lab_sleep(lab, true));
	assert_true(has_offer(lab));
	*state = lab;
	return 0;
}

static int close_both(void **state)
{
	struct lab *lab = *state;

	shm_conn_put(both.far);
	shm_conn_put(lab->conn);
	if (!atomic_load(&both.is_dead))
		soft_keys_invalidate(lab->adapter.keys, both.key);
	soft_keys_release(lab->adapter.keys, both.key);
	lab_close(lab);
	return 0;
}

static bool far_sends(void)
{
	uint64_t budget = SIZE;
	bool is_placed = shm_place_send(both.far, &both.far_ep, &both.far_req, &budget);

	both.far->tx_next += is_placed;
	assert_int_equal(atomic_load(&both.far->mine->announce), 0);
	return is_placed;
}

static void check_receive(const struct lab *lab, bool is_changed)
{
	static uint8_t old[SIZE];

	memset(old, OLD, SIZE);
	assert_memory_equal(lab->memory + AT, is_changed ? lab->memory : old, SIZE);
}

/* --- the region is freed --- */

/* As dat_lmr_free does. */
static void free_region(struct lab *lab)
{
	soft_keys_invalidate(lab->adapter.keys, both.key);
	atomic_store(&both.is_dead, true);
	shm_engine_wait_key(&lab->engine, both.key);
	both.is_announced = atomic_load(&both.far->mine->announce) == both.key;
	memcpy(both.at_free, lab->memory + AT, SIZE);
	atomic_store(&lab->lmr->key, 0);
}

/* LMR-FREE-06 LMR-FREE-17 DTO-96: the offer gives no access any more, and the Receive fails. */
static void free__receive_offered__no_byte_changes_and_receive_fails(void **state)
{
	struct lab *lab = *state;

	free_region(lab);
	assert_int_equal(mine(lab)->offer_key, both.key);
	atomic_store(&lab->lmr->key, LAB_LOCAL_KEY); /* the peer's source lies in the same memory */
	assert_false(far_sends());
	atomic_store(&lab->lmr->key, 0);
	check_receive(lab, false);
	assert_int_equal(both.far->sent, 0);
	/* so the peer uses the ring */
	ask(lab, lab_send_entry(SIZE), lab->peer_memory);
	assert_int_equal(lab->received, 1);
	assert_int_equal(lab->receive_status, DAT_DTO_ERR_LOCAL_PROTECTION);
	expect_broken(lab);
	check_receive(lab, false);
}

/* LMR-FREE-19: a region that is registered now does not get what the peer knows. */
static void free__registered_again__offer_gives_no_access(void **state)
{
	struct lab *lab = *state;
	uint32_t key;

	soft_keys_invalidate(lab->adapter.keys, both.key);
	shm_engine_wait_key(&lab->engine, both.key);
	soft_keys_release(lab->adapter.keys, both.key);
	assert_int_equal(soft_keys_add(lab->adapter.keys, (uintptr_t)lab->memory + AT, SIZE,
				       SOFT_RIGHT_LOCAL, lab->pz.id, &key),
			 0);
	assert_int_not_equal(key, both.key);
	both.key = key;
	assert_false(far_sends());
	check_receive(lab, false);
}

/* DTO-96: it was carried out before. */
static void free__message_placed__receive_succeeds(void **state)
{
	struct lab *lab = *state;

	ABILITY_NEED_VM_CALLS();
	assert_true(far_sends());
	free_region(lab);
	lab_pass(lab);
	assert_int_equal(lab->received, 1);
	assert_int_equal(lab->receive_status, DAT_DTO_SUCCESS);
	assert_true(lab_is_open(lab));
}

/* LMR-FREE-21: the sender is stopped in the middle of the copy. */
static void free__sender_stopped_in_the_copy__connection_breaks_and_no_byte_changes(void **state)
{
	struct lab *lab = *state;

	both.event = (struct event){free_region, false};
	assert_false(far_sends());
	assert_true(both.is_announced); /* until the time-out */
	expect_broken(lab);
	assert_int_equal(lab->received, 0);
	check_receive(lab, false);
	assert_int_equal(lab->done, 0);
}

/* LMR-FREE-21 DTO-52: and after the copy. The Receive was flushed, so the Send does not succeed.
 */
static void free__sender_stopped_before_its_entry__send_is_not_complete(void **state)
{
	struct lab *lab = *state;

	ABILITY_NEED_VM_CALLS();
	both.event = (struct event){free_region, true};
	assert_true(far_sends());
	expect_broken(lab);
	assert_int_equal(lab->received, 0);
	assert_int_equal(both.far->sent, 1);
	assert_int_equal(shm_conn_acked(both.far), 0);
	assert_int_equal(both.far_ep.req.head, 0);
}

static void *free_in_thread(void *unused)
{
	free_region(both.lab);
	return unused;
}

/* Begins to free the region, and returns when the key is dead. */
static void begin_free(struct lab *lab)
{
	lab->engine.settings.peer_timeout_ms = 20000; /* the sender runs: the call waits for it */
	assert_int_equal(pthread_create(&both.freeing, NULL, free_in_thread, NULL), 0);
	while (!atomic_load(&both.is_dead))
		sched_yield();
}

/* LMR-FREE-21 LMR-FREE-06: the call returns after the copy, and no byte changes after that. */
static void free__sender_in_the_copy__returns_behind_it(void **state)
{
	struct lab *lab = *state;

	ABILITY_NEED_VM_CALLS();
	both.event = (struct event){begin_free, false};
	assert_true(far_sends());
	assert_int_equal(pthread_join(both.freeing, NULL), 0);
	assert_false(both.is_announced);
	assert_memory_equal(both.at_free, lab->memory, SIZE);
	lab_pass(lab);
	assert_int_equal(lab->received, 1);
	assert_int_equal(lab->receive_status, DAT_DTO_SUCCESS);
	assert_true(lab_is_open(lab));
}

/* --- the connection ends --- */

static void disconnect(struct lab *lab)
{
	shm_ep_disconnect(&lab->ep, false);
}

/* The peer takes what our side has done, as it does before it reports the end. */
static void expect_far_done(struct lab *lab, unsigned done)
{
	assert_true(shm_tx_read_done(both.far, &both.far_ep) >= 0);
	assert_int_equal(lab->done, done);
}

/* The end waits for the copy. Then it is reported. */
static void expect_end(struct lab *lab, unsigned received)
{
	shm_ep_disconnect(&lab->ep, false);
	assert_int_equal(lab->end, DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_int_equal(lab->received, received);
}

/* DTO-120: the connection ends before the copy, which then stores nothing. */
static void disconnect__before_the_copy__no_byte_changes(void **state)
{
	struct lab *lab = *state;

	both.event = (struct event){disconnect, false};
	assert_false(far_sends());
	assert_int_equal(lab->end, 0);
	check_receive(lab, false);
	expect_end(lab, 0);
}

/*
 * DTO-52: the connection ends after the copy and before the entry. So the sender does not complete
 * the Send itself. It reads `done`, which our side stores when the Receive is complete.
 */
static void disconnect__behind_the_copy__receive_and_send_succeed(void **state)
{
	struct lab *lab = *state;

	ABILITY_NEED_VM_CALLS();
	both.event = (struct event){disconnect, true};
	assert_true(far_sends());
	assert_int_equal(lab->end, 0);
	expect_far_done(lab, 0);
	assert_int_equal(done(lab), 0);
	expect_end(lab, 1);
	assert_int_equal(lab->receive_status, DAT_DTO_SUCCESS);
	assert_int_equal(done(lab), 1);
}

/* DTO-52 DTO-06: the same after the entry. Both succeed, and once. */
static void disconnect__message_placed__receive_and_send_succeed(void **state)
{
	struct lab *lab = *state;

	ABILITY_NEED_VM_CALLS();
	assert_true(far_sends());
	assert_int_equal(lab->done, 1);
	expect_end(lab, 1);
	assert_int_equal(lab->receive_status, DAT_DTO_SUCCESS);
	check_receive(lab, true);
	/* the report that comes later changes nothing */
	assert_int_equal(done(lab), 1);
	expect_far_done(lab, 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, close_both)
	const struct CMUnitTest tests[] = {
		T(free__receive_offered__no_byte_changes_and_receive_fails),
		T(free__registered_again__offer_gives_no_access),
		T(free__message_placed__receive_succeeds),
		T(free__sender_stopped_in_the_copy__connection_breaks_and_no_byte_changes),
		T(free__sender_stopped_before_its_entry__send_is_not_complete),
		T(free__sender_in_the_copy__returns_behind_it),
		T(disconnect__before_the_copy__no_byte_changes),
		T(disconnect__behind_the_copy__receive_and_send_succeed),
		T(disconnect__message_placed__receive_and_send_succeed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
