// SPDX-License-Identifier: BSD-2-Clause
/*
 * One end of a connection and an honest peer: messages and RDMA on the slow path (transfer/rx.c).
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/slab.h"
#include "slow.h"
#include "soft/key.h"
#include "soft/shm/connect/ep.h"
#include "soft/shm/transfer/progress.h"
#include "soft/shm/transfer/rx.h"
#include "soft/shm/transfer/tx.h"

/* --- honest peers --- */

static void message__receive_posted__placed_and_acknowledged(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = lab_send_entry(5);

	assert_true(lab_post_receive(lab, 100, 50));
	entry.flags |= SHM_FLAG_SOLICITED;
	ask(lab, entry, "hello");
	assert_int_equal(lab->received, 1);
	assert_int_equal(lab->receive_status, DAT_DTO_SUCCESS);
	assert_int_equal(lab->receive_len, 5);
	assert_true(lab->receive_solicited);
	assert_memory_equal(lab->memory + 100, "hello\xa5", 6);
	assert_int_equal(done(lab), 1);
}

/* While a thread polls: by the next entry, by the next pass, or when there are many. */
static void message__polled__acknowledged_with_the_answer_or_later(void **state)
{
	struct lab *lab = *state;
	struct shm_consumer in;
	const uint8_t *bytes;
	struct shm_entry entry;
	unsigned i;

	shm_conn_disarm(lab->conn);
	assert_true(lab_post_receive(lab, 0, 10));
	ask(lab, lab_send_entry(3), "one");
	assert_int_equal(lab->received, 1);
	assert_int_equal(done(lab), 0);
	assert_true(shm_conn_has_work(lab->conn));
	lab_pass(lab);
	assert_int_equal(done(lab), 1);
	assert_false(shm_conn_has_work(lab->conn));

	assert_true(lab_post_receive(lab, 0, 10));
	ask(lab, lab_send_entry(3), "two");
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 3, 0, 0));
	assert_int_equal(done(lab), 1);
	assert_false(shm_conn_has_work(lab->conn));
	shm_consumer_init(&in, lab->conn->segment->request[SHM_PASSIVE], SHM_REQUEST_RING,
			  SHM_REQUEST_PAYLOAD, &lab->peer->request_consumed);
	assert_int_equal(shm_consumer_peek(&in, &entry, &bytes), 1);
	assert_int_equal(entry.done, 2);

	for (i = 0; i < 8; i++) {
		assert_int_equal(done(lab), 1);
		assert_true(lab_post_receive(lab, 0, 10));
		entry = lab_send_entry(3);
		assert_true(lab_peer_entry(&lab->peer_out, &entry, "and"));
		assert_int_equal(shm_rx_run(lab->conn, &lab->ep, &(uint64_t){100}), 1);
		shm_conn_flush(lab->conn, true);
	}
	assert_int_equal(done(lab), 2 + 8);
}

/* A message was taken and an answer posted at once, which reports it to the peer. */
static void answer_one(struct lab *lab)
{
	assert_true(lab_post_receive(lab, 0, 10));
	ask(lab, lab_send_entry(3), "one");
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 3, 0, 0));
}

/* DTO-117: the peer does not read the answer behind a message that waits there. */
static void message__answer_held_up_at_the_peer__acknowledged_by_the_word(void **state)
{
	struct lab *lab = *state;

	shm_conn_disarm(lab->conn);
	answer_one(lab);
	assert_int_equal(done(lab), 0);
	atomic_store(&lab->peer->waits, SHM_WAITS_RECEIVE);
	assert_true(shm_conn_has_work(lab->conn));
	lab_pass(lab);
	assert_int_equal(done(lab), 1);
	answer_one(lab);
	assert_int_equal(done(lab), 2);
	assert_true(lab_is_open(lab));
}

/* DTO-52: the peer reads `failed` before it reads entries. */
static void message__answered__acknowledged_by_the_word_before_one_is_refused(void **state)
{
	struct lab *lab = *state;

	hold(lab);
	shm_conn_disarm(lab->conn);
	answer_one(lab);
	assert_int_equal(done(lab), 0);
	assert_true(lab_post_receive(lab, 0, 2));
	ask(lab, lab_send_entry(3), "two");
	assert_int_equal(failed(lab), SHM_FAILED(SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_RESPONDER));
	assert_int_equal(done(lab), 1);
	shm_conn_put(lab->conn);
}

/* The same for a connection that ends while the peer has no Receive for the answer. */
static void message__answered__acknowledged_by_the_word_before_the_end(void **state)
{
	struct lab *lab = *state;

	hold(lab);
	shm_conn_disarm(lab->conn);
	answer_one(lab);
	assert_int_equal(done(lab), 0);
	shm_ep_disconnect(&lab->ep, false);
	assert_int_equal(done(lab), 1);
	shm_conn_put(lab->conn);
}

/* A word that lags by half of its range would look like a newer, false value. */
static void message__always_answered_at_once__word_does_not_lag_too_far(void **state)
{
	const uint32_t reported_by_entries = 0x7ffffff0u;
	struct lab *lab = *state;
	unsigned i;

	shm_conn_disarm(lab->conn);
	lab->conn->done = reported_by_entries;
	lab->conn->reported = reported_by_entries;
	for (i = 1; i <= 32; i++) {
		answer_one(lab);
		assert_true((int32_t)(reported_by_entries + i - done(lab)) >= 0);
		/* the answer is taken */
		atomic_store(&lab->peer->done, i);
		assert_int_equal(shm_tx_read_done(lab->conn, &lab->ep), 1);
	}
}

/* An entry of the peer completes our Sends as its word does; the older of the two has no effect. */
static void message__reports_what_is_done__completes_our_sends(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = lab_send_entry(3);

	assert_true(lab_post(lab, CORE_OP_SEND, 0, 3, 0, 0));
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 3, 0, 0));
	assert_true(lab_post_receive(lab, 0, 10));
	assert_true(lab_post_receive(lab, 0, 10));
	entry.done = 1;
	ask(lab, entry, "one");
	assert_int_equal(lab->done, 1);
	atomic_store(&lab->peer->done, 2);
	assert_true(shm_conn_has_work(lab->conn));
	lab_pass(lab);
	assert_int_equal(lab->done, 2);
	ask(lab, entry, "two");
	assert_int_equal(lab->received, 2);
	assert_int_equal(lab->done, 2);
	assert_true(lab_is_open(lab));
	entry.done = 3;
	ask(lab, entry, "lie");
	expect_broken(lab);
}

/* DTO-104 */
static void message__no_receive__waits_and_fills_the_late_one(void **state)
{
	struct lab *lab = *state;

	ask(lab, lab_send_entry(3), "one");
	ask(lab, lab_send_entry(3), "two");
	assert_int_equal(lab->received, 0);
	assert_int_equal(done(lab), 0);
	assert_int_equal(atomic_load(&lab->conn->mine->waits), SHM_WAITS_RECEIVE);
	assert_false(shm_conn_has_work(lab->conn));
	assert_true(lab_post_receive(lab, 0, 10));
	assert_int_equal(lab->received, 1);
	assert_memory_equal(lab->memory, "one", 3);
	assert_int_equal(done(lab), 1);
	assert_true(lab_post_receive(lab, 0, 10));
	assert_memory_equal(lab->memory, "two", 3);
	assert_int_equal(done(lab), 2);
	assert_int_equal(atomic_load(&lab->conn->mine->waits), 0);
}

static void message__in_pieces__placed_one_after_the_other(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = {.type = SHM_ENTRY_SEND, .payload = 2, .length = 5};

	assert_true(lab_post_receive(lab, 0, 10));
	entry.flags = SHM_FLAG_FIRST;
	ask(lab, entry, "ab");
	entry.flags = 0;
	ask(lab, entry, "cd");
	assert_int_equal(lab->received, 0);
	entry.flags = SHM_FLAG_LAST;
	entry.payload = 1;
	ask(lab, entry, "e");
	assert_int_equal(lab->receive_len, 5);
	assert_memory_equal(lab->memory, "abcde", 5);
}

static void write__through_the_ring__placed_at_its_address(void **state)
{
	struct lab *lab = *state;

	ask(lab, write_entry(lab, LAB_MEMORY - 4, 4), "tail");
	assert_memory_equal(lab->memory + LAB_MEMORY - 4, "tail", 4);
	assert_int_equal(done(lab), 1);
	assert_true(lab_is_open(lab));
}

static void read__through_the_ring__answered_in_pieces(void **state)
{
	struct lab *lab = *state;
	struct shm_consumer in;
	const uint8_t *bytes;
	struct shm_entry entry;

	memset(lab->memory, 'r', 5000);
	ask(lab,
	    (struct shm_entry){.type = SHM_ENTRY_READ,
			       .key = lab->read_only,
			       .address = (uintptr_t)lab->memory,
			       .length = 5000},
	    NULL);
	shm_consumer_init(&in, lab->conn->segment->response[SHM_PASSIVE], SHM_RESPONSE_RING,
			  SHM_RESPONSE_PAYLOAD, &lab->peer->response_consumed);
	assert_int_equal(shm_consumer_peek(&in, &entry, &bytes), 1);
	assert_int_equal(entry.payload, SHM_RESPONSE_PAYLOAD);
	assert_int_equal(bytes[0], 'r');
	shm_consumer_pop(&in);
	assert_int_equal(shm_consumer_peek(&in, &entry, &bytes), 1);
	shm_consumer_pop(&in);
	assert_int_equal(shm_consumer_peek(&in, &entry, &bytes), 1);
	assert_int_equal(entry.payload, 5000 - 2 * SHM_RESPONSE_PAYLOAD);
	assert_int_equal(entry.flags, SHM_FLAG_LAST);
}

/* The peer takes what is in the response ring: that many bytes, all of that value. */
static uint64_t take_answers(struct lab *lab, uint8_t value)
{
	struct shm_consumer in;
	const uint8_t *bytes;
	struct shm_entry entry;
	uint64_t count = 0;

	shm_consumer_init(&in, lab->conn->segment->response[SHM_PASSIVE], SHM_RESPONSE_RING,
			  SHM_RESPONSE_PAYLOAD, &lab->peer->response_consumed);
	while (shm_consumer_peek(&in, &entry, &bytes) == 1) {
		for (uint32_t i = 0; i < entry.payload; i++)
			assert_int_equal(bytes[i], value);
		count += entry.payload;
		shm_consumer_pop(&in);
	}
	shm_consumer_give_back(&in);
	return count;
}

/* LMR-FREE-21 DTO-98: no byte of the region that was freed before the rest is answered */
static void read__freed_before_the_rest__refused(void **state)
{
	struct lab *lab = *state;

	hold(lab);
	memset(lab->memory, 'r', LAB_MEMORY);
	ask(lab,
	    (struct shm_entry){.type = SHM_ENTRY_READ,
			       .key = lab->read_only,
			       .address = (uintptr_t)lab->memory,
			       .length = 4 * SHM_RESPONSE_RING},
	    NULL);
	assert_true(lab->conn->is_response_wanted);
	soft_keys_invalidate(lab->adapter.keys, lab->read_only);
	memset(lab->memory, 'x', LAB_MEMORY);
	assert_int_not_equal(take_answers(lab, 'r'), 0);
	lab_pass(lab);
	assert_int_equal(failed(lab), SHM_FAILED(SHM_FAILED_READ, DAT_DTO_ERR_REMOTE_ACCESS));
	assert_int_equal(take_answers(lab, 'r'), 0);
	expect_broken(lab);
	shm_conn_put(lab->conn);
}

static void message__fetched__placed_from_two_sources(void **state)
{
	struct lab *lab = *state;
	struct shm_source sources[2] = {
		{.key = lab->peer_rkey, .address = (uintptr_t)lab->peer_memory, .length = 6000},
		{.key = lab->peer_rkey, .address = (uintptr_t)lab->peer_memory + 7000, .length = 1},
	};

	ABILITY_NEED_VM_CALLS();
	memset(lab->peer_memory, 'p', 6000);
	lab->peer_memory[7000] = 'q';
	assert_true(lab_post_receive(lab, 1, 8000));
	ask(lab,
	    (struct shm_entry){.type = SHM_ENTRY_PULL,
			       .flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
			       .payload = sizeof(sources),
			       .length = 6001},
	    sources);
	assert_int_equal(lab->receive_len, 6001);
	assert_int_equal(lab->memory[6000], 'p');
	assert_int_equal(lab->memory[6001], 'q');
	assert_int_equal(done(lab), 1);
	assert_int_equal(atomic_load(&lab->conn->mine->announce), 0);
}

/* --- mapped memory --- */

#define PAGE 4096u

/* The lab of the fixture below, whose peer gives memory of this file. */
static int peer_file;

static int setup_map(void **state)
{
	struct lab *lab = lab_open(CORE_COPY_MAP, true);

	lab->conn->remote.has_cma = false;
	lab->conn->remote.maps = core_slab_alloc(SHM_MAPS * sizeof(*lab->conn->remote.maps));
	assert_non_null(lab->conn->remote.maps);
	peer_file = memfd_create("peer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(peer_file, LAB_MEMORY), 0);
	assert_int_equal(fcntl(peer_file, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_int_equal(pwrite(peer_file, "the file", 8, 0), 8);
	*state = lab;
	return 0;
}

static int teardown_map(void **state)
{
	close(peer_file);
	return teardown(state);
}

/* The peer answers the question for its memory. */
static void peer_gives(struct lab *lab, int fd)
{
	const struct shm_wire_give give = {.key = lab->peer_rkey,
					   .address = (uintptr_t)lab->peer_memory,
					   .length = LAB_MEMORY};
	union shm_wire wire;

	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_MAP_ASK);
	shm_map_given(lab->conn, &give, fd);
}

static bool post_rdma(struct lab *lab, enum core_op op)
{
	return lab_post(lab, op, 0, 8, lab->peer_rkey, (uintptr_t)lab->peer_memory);
}

static uint64_t counted(struct lab *lab, enum shm_counter counter)
{
	return shm_engine_count(&lab->engine, counter);
}

/* The first Write asks for the memory and goes through the ring. */
static void write_and_map(struct lab *lab, int fd)
{
	assert_true(post_rdma(lab, CORE_OP_RDMA_WRITE));
	assert_int_equal(counted(lab, SHM_COUNT_RING), 1);
	peer_gives(lab, fd);
}

/* LMR-CREATE-23 LMR-USE-14: Writes into memory that only the peer may write are up to the peer */
static void rdma__file_read_only__only_reads_use_the_mapping(void **state)
{
	struct lab *lab = *state;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", peer_file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	write_and_map(lab, fd);
	close(fd);
	assert_true(post_rdma(lab, CORE_OP_RDMA_WRITE));
	atomic_store(&lab->peer->done, 2);
	lab_pass(lab);
	assert_int_equal(lab->done, 2);
	assert_int_equal(counted(lab, SHM_COUNT_MAP), 0);
	assert_int_equal(counted(lab, SHM_COUNT_RING), 2);
	assert_true(post_rdma(lab, CORE_OP_RDMA_READ));
	assert_int_equal(lab->done, 3);
	assert_int_equal(lab->done_status, DAT_DTO_SUCCESS);
	assert_int_equal(counted(lab, SHM_COUNT_MAP), 1);
	assert_memory_equal(lab->memory, "the file", 8);
}

/*
 * A request waits for the Write through the ring; meanwhile the consumer takes its memory away. The
 * thread of the library carries the request out.
 */
static void check_rdma_on_gone_memory(struct lab *lab, enum core_op op)
{
	ABILITY_NEED(sysconf(_SC_PAGESIZE) == PAGE, "pages are larger than the guard");
	write_and_map(lab, peer_file);
	assert_true(post_rdma(lab, op));
	assert_int_equal(lab->done, 0);
	assert_int_equal(mprotect(lab->memory, PAGE, PROT_NONE), 0);
	atomic_store(&lab->peer->done, 1);
	lab_library_pass(lab);
	assert_int_equal(mprotect(lab->memory, PAGE, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(lab->done, 2);
	assert_int_equal(lab->done_status, DAT_DTO_ERR_LOCAL_PROTECTION);
	expect_broken(lab);
}

/* LMR-USE-14 */
static void write__memory_gone_in_a_library_thread__local_protection(void **state)
{
	char bytes[8];

	check_rdma_on_gone_memory(*state, CORE_OP_RDMA_WRITE);
	assert_int_equal(pread(peer_file, bytes, 8, 0), 8);
	assert_memory_equal(bytes, "the file", 8);
}

/* LMR-USE-14 */
static void read__memory_gone_in_a_library_thread__local_protection(void **state)
{
	check_rdma_on_gone_memory(*state, CORE_OP_RDMA_READ);
}

/* LMR-USE-14: a message that is fetched from mapped memory */
static void message__receive_gone_in_a_library_thread__local_protection(void **state)
{
	struct lab *lab = *state;
	struct shm_source source = {
		.key = lab->peer_rkey, .address = (uintptr_t)lab->peer_memory, .length = 8};
	struct shm_entry entry = {.type = SHM_ENTRY_PULL,
				  .flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
				  .payload = sizeof(source),
				  .length = 8};

	ABILITY_NEED(sysconf(_SC_PAGESIZE) == PAGE, "pages are larger than the guard");
	hold(lab);
	write_and_map(lab, peer_file);
	assert_true(lab_post_receive(lab, 0, 8));
	assert_true(lab_peer_entry(&lab->peer_out, &entry, &source));
	assert_int_equal(mprotect(lab->memory, PAGE, PROT_NONE), 0);
	lab_library_pass(lab);
	assert_int_equal(mprotect(lab->memory, PAGE, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(lab->received, 1);
	assert_int_equal(lab->receive_status, DAT_DTO_ERR_LOCAL_PROTECTION);
	assert_int_equal(failed(lab), SHM_FAILED(SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_RESPONDER));
	expect_broken(lab);
	shm_conn_put(lab->conn);
}

int main(void)
{
#define MAP(name) cmocka_unit_test_setup_teardown(name, setup_map, teardown_map)
#define RING(name) cmocka_unit_test_setup_teardown(name, setup_ring, teardown)
#define CMA(name) cmocka_unit_test_setup_teardown(name, setup_cma, teardown)
	const struct CMUnitTest tests[] = {
		RING(message__receive_posted__placed_and_acknowledged),
		RING(message__polled__acknowledged_with_the_answer_or_later),
		RING(message__answer_held_up_at_the_peer__acknowledged_by_the_word),
		RING(message__answered__acknowledged_by_the_word_before_one_is_refused),
		RING(message__answered__acknowledged_by_the_word_before_the_end),
		RING(message__always_answered_at_once__word_does_not_lag_too_far),
		RING(message__reports_what_is_done__completes_our_sends),
		RING(message__no_receive__waits_and_fills_the_late_one),
		RING(message__in_pieces__placed_one_after_the_other),
		RING(write__through_the_ring__placed_at_its_address),
		RING(read__through_the_ring__answered_in_pieces),
		RING(read__freed_before_the_rest__refused),
		CMA(message__fetched__placed_from_two_sources),
		MAP(rdma__file_read_only__only_reads_use_the_mapping),
		MAP(write__memory_gone_in_a_library_thread__local_protection),
		MAP(read__memory_gone_in_a_library_thread__local_protection),
		MAP(message__receive_gone_in_a_library_thread__local_protection),
	};

	return cmocka_run_group_tests_name("shm peer", tests, NULL, NULL);
}
