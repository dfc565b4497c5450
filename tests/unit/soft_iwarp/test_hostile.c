// SPDX-License-Identifier: BSD-2-Clause
/* Peers that do what no honest one does, and what it costs us: nothing but their connection. */
#include "flow_stage.h"

#include <stdio.h>

/* The adapter's own limit for a peer that is silent after its end is short here. */
static int open_hostile(void **state)
{
	(void)state;
	return open_flow_with("hostile", "127.0.0.1 transport=tcp setup_timeout_ms=400");
}

static size_t resident_kb(void)
{
	char line[128];
	size_t pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	assert_non_null(file);
	if (fgets(line, sizeof(line), file))
		(void)sscanf(line, "%*u %zu", &pages);
	fclose(file);
	return pages * ((size_t)sysconf(_SC_PAGESIZE) / 1024);
}

/* --- Reads --- */

#define DEPTH 9u /* the IRD that an endpoint with 8 Reads tells */

/* RDMAP-26 IWCM-41 IWCM-42: as many Reads as are allowed, of all of the region, and none is taken
 */
static void reads__never_taken__others_go_on_and_disconnect_is_at_once(void **state)
{
	struct iw_read_request request = {.size = REGION};
	size_t before = resident_kb();
	uint64_t begin;
	int reader;

	(void)state;
	be_called_with(0, 4, 4);
	request.source_stag = flow.rkey;
	request.source_offset = address_of(flow.region);
	for (unsigned i = 0; i < DEPTH; i++)
		peer_read(&request);
	expect_served();
	reader = flow.fd;
	be_calling_with(0, 4, 4);
	post_recv_at(0, 4);
	peer_send("ping", 4);
	expect_dto(0, DAT_DTO_SUCCESS, 4);
	hang_up();
	/* what is not sent yet is not kept */
	assert_true(resident_kb() - before < 4096);
	begin = now_ms();
	flow.fd = reader;
	flow.ep = stage.b;
	ok(core_ep_disconnect(stage.b, DAT_CLOSE_ABRUPT_FLAG));
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_true(now_ms() - begin < 2000);
	end_flow();
}

/* --- the set-up --- */

/* A request of our own kind with that nonce, on a new socket. */
static int request_with(uint32_t nonce)
{
	const struct cm_request request = {
		.qual = stage.qual, .nonce = nonce, .port = 4711, .read_in = 8, .read_out = 8};
	uint8_t bytes[CM_MAX];
	size_t size = cm_put_request(&request, bytes);
	struct frame frame = make_enhanced(REQUEST, 0, WORDS(WORD_A | WORD_C, 9, 9), bytes, size);
	int fd = dial(stage.qual);

	put_frame(fd, &frame);
	return fd;
}

/* IWCM-26: a repeated nonce takes over a request that waits, but no connection that was accepted */
static void nonce__of_an_accepted_request__another_request(void **state)
{
	struct frame frame;
	int second;

	(void)state;
	begin_flow(request_with(77), stage.b, false);
	take_request();
	accept_with(NULL, 0);
	frame = get_frame(flow.fd, REPLY);
	put(flow.fd, rtr_write, sizeof(rtr_write));
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	second = request_with(77);
	take_request();
	ok(core_cr_reject(stage.cr));
	frame = get_frame(second, REPLY);
	assert_int_equal(frame.head[16] & FLAG_R, FLAG_R);
	close(second);
	post_recv_at(0, 4);
	peer_send("ping", 4);
	expect_dto(0, DAT_DTO_SUCCESS, 4);
	hang_up();
}

/* IWCM-25 IWCM-42: an FPDU that grows by a byte now and then does not hold an endpoint for ever */
static void accepted__a_byte_now_and_then__ends_after_the_setup_timeout(void **state)
{
	struct frame frame = make_enhanced(REQUEST, 0, WORDS(WORD_A | WORD_C, 9, 9), NULL, 0);
	uint64_t begin = now_ms();

	(void)state;
	begin_flow(dial(stage.qual), stage.b, false);
	put_frame(flow.fd, &frame);
	take_request();
	accept_with(NULL, 0);
	frame = get_frame(flow.fd, REPLY);
	(void)put_slowly(flow.fd, rtr_write, sizeof(rtr_write) - 1, 80);
	expect(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	assert_true(now_ms() - begin >= 400);
	end_flow();
}

/* --- keys --- */

static DAT_RMR_CONTEXT bind_window(DAT_RMR_HANDLE rmr)
{
	DAT_LMR_TRIPLET triplet = segment_at(1000, 64);
	DAT_RMR_COOKIE cookie = {.as_64 = 77};
	DAT_RMR_CONTEXT context;

	ok(core_rmr_bind(rmr, &triplet, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, flow.ep, cookie,
			 DAT_COMPLETION_DEFAULT_FLAG, &context));
	assert_int_equal(next_of(stage.evd).event_number, DAT_RMR_BIND_COMPLETION_EVENT);
	return context;
}

static void send_invalidate(DAT_RMR_CONTEXT context)
{
	struct iw_ddp ddp = send_header(0, true);

	ddp.opcode = IW_OP_SEND_INVALIDATE;
	ddp.invalidate = context;
	put_segment(&ddp, NULL, 0);
}

/* RDMAP-13: the key of a window, twice; its owner goes on with it as if nothing had happened */
static void invalidate__key_of_a_window__bound_again_later(void **state)
{
	DAT_RMR_CONTEXT context, other;
	DAT_RMR_HANDLE rmr;

	(void)state;
	ok(core_rmr_create(stage.pz, &rmr));
	for (unsigned round = 0; round < 3; round++) {
		be_called_by_own(0);
		put(flow.fd, rtr_write, sizeof(rtr_write));
		expect(DAT_CONNECTION_EVENT_ESTABLISHED);
		context = bind_window(rmr);
		post_recv_at(0, 0);
		send_invalidate(context);
		expect_dto(0, DAT_DTO_SUCCESS, 0);
		/* a new key works, the dead one does not */
		other = bind_window(rmr);
		assert_int_not_equal(other, context);
		peer_write(other, address_of(flow.region + 1000), "good", 4);
		peer_write(context, address_of(flow.region + 1000), "evil", 4);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		assert_memory_equal(flow.region + 1000, "good", 4);
		end_flow();
	}
	ok(core_rmr_free(rmr));
}

/* RDMAP-14: a key that is dead already */
static void invalidate__the_same_key_twice__breaks(void **state)
{
	DAT_RMR_HANDLE rmr;
	DAT_RMR_CONTEXT context;

	(void)state;
	be_called_by_own(0);
	put(flow.fd, rtr_write, sizeof(rtr_write));
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	ok(core_rmr_create(stage.pz, &rmr));
	context = bind_window(rmr);
	post_recv_at(0, 0);
	post_recv_at(1, 0);
	send_invalidate(context);
	send_invalidate(context);
	expect_dto(0, DAT_DTO_SUCCESS, 0);
	expect_dto(1, DAT_DTO_ERR_LOCAL_PROTECTION, 0);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	end_flow();
	ok(core_rmr_free(rmr));
}

/* --- proofs --- */

/* DTO-116: counts that say nothing new, without end: none is answered */
static void counts__without_end__nothing_grows(void **state)
{
	size_t before;

	(void)state;
	be_called_by_own(0);
	put(flow.fd, rtr_write, sizeof(rtr_write));
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	before = resident_kb();
	for (unsigned i = 0; i < 5000; i++)
		peer_counts(0, 0);
	expect_served();
	expect_silence(flow.fd);
	assert_true(resident_kb() - before < 4096);
	hang_up();
}

/* DTO-116: a peer that counts what it cannot have carried out loses the connection; nothing
 * succeeds by that */
static void counts__more_than_was_sent__terminate(void **state)
{
	static const uint32_t lies[][2] = {
		{2, 0}, {1, 1}, {UINT32_MAX, 0}, {0, UINT32_MAX}, {0x80000000, 0x80000000}};
	struct taken taken;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(lies); i++) {
		be_called_by_own(0);
		put(flow.fd, rtr_write, sizeof(rtr_write));
		expect(DAT_CONNECTION_EVENT_ESTABLISHED);
		post_send_at(0, 10, 0);
		get_fpdu(&taken);
		peer_counts(lies[i][0], lies[i][1]);
		expect_dto(0, DAT_DTO_ERR_FLUSHED, 0);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		expect_terminate(IW_ERROR(0, 2, 7), NULL);
		end_flow();
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_hostile, close_stage)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reads__never_taken__others_go_on_and_disconnect_is_at_once),
		TEST(nonce__of_an_accepted_request__another_request),
		TEST(accepted__a_byte_now_and_then__ends_after_the_setup_timeout),
		TEST(invalidate__key_of_a_window__bound_again_later),
		TEST(invalidate__the_same_key_twice__breaks),
		TEST(counts__without_end__nothing_grows),
		TEST(counts__more_than_was_sent__terminate),
	};

	return cmocka_run_group_tests(tests, provide, NULL);
}
