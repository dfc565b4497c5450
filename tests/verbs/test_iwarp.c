// SPDX-License-Identifier: BSD-2-Clause
/*
 * What is different over iWARP: the confirmation of a set-up, Receives without segments, which some
 * devices refuse, messages that cannot wait, verified Writes, and the targets of RDMA Reads.
 */
#include "rig.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static struct rig rig;

static int open_rig(void **state)
{
	(void)state;
	rig.qual = 0;
	rig_begin(&rig);
	return 0;
}

static int close_rig(void **state)
{
	(void)state;
	rig_close(&rig);
	return 0;
}

static void post_recv__no_segments__message_of_size_zero(void **state)
{
	const DAT_DTO_COOKIE sent = {.as_64 = 1}, got = {.as_64 = 2};

	(void)state;
	assert_int_equal(core_ep_post_recv(rig.b.ep, 0, NULL, got, DAT_COMPLETION_DEFAULT_FLAG),
			 DAT_SUCCESS);
	assert_int_equal(core_ep_post_send(rig.a.ep, 0, NULL, sent, DAT_COMPLETION_DEFAULT_FLAG),
			 DAT_SUCCESS);
	rig_expect_dto(&rig.a, 1, DAT_DTO_SUCCESS);
	rig_expect_dto(&rig.b, 2, DAT_DTO_SUCCESS);
}

/* Connects again, but the active side cannot post the confirmation. */
static void connect_without_confirmation(void)
{
	rig_part(&rig);
	rig_reset(&rig);
	fake_fail_next("ibv_post_send");
	assert_int_equal(rig_connect(&rig, NULL, 0), DAT_SUCCESS);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/*
 * CR-ACCEPT-19 CR-ACCEPT-20: the passive side is not connected before the active side has confirmed
 */
static void connect__active_side_says_nothing__accept_completion_error(void **state)
{
	(void)state;
	connect_without_confirmation();
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_BROKEN);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	assert_string_equal(fake_failed(), "ibv_post_send");
	fake_fail_at(0);
	rig_again(&rig);
}

/*
 * CONN-EVT-22 CR-ACCEPT-19: the active side confirms and then ends the connection. The manager's
 * event of the end does not overtake the confirmation.
 */
static void connect__active_side_confirms_and_leaves__established_first(void **state)
{
	(void)state;
	rig_part(&rig);
	rig_reset(&rig);
	fake_leave_next();
	assert_int_equal(rig_connect(&rig, NULL, 0), DAT_SUCCESS);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_ESTABLISHED);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_ESTABLISHED);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_again(&rig);
}

/*
 * EP-DISC-31 EP-DISC-39: the passive side closes the stream at once, so that nothing can be posted
 * any more. The connection manager reports the reason a moment later.
 */
static void connect__passive_side_ends_it_at_once__disconnected(void **state)
{
	(void)state;
	connect_without_confirmation();
	usleep(100000); /* after the time of the first Write of length 0 */
	assert_string_equal(fake_failed(), "ibv_post_send");
	rig_no_event(rig.a.conn);
	assert_int_equal(core_ep_disconnect(rig.b.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_DISCONNECTED);
	fake_fail_at(0);
	rig_again(&rig);
}

/*
 * EP-CONNECT-25: the connection manager times out before the consumer has answered. The other ports
 * of the qualifier are tried, where no one listens, and then the first one again.
 */
static void connect__consumer_takes_its_time__asked_again(void **state)
{
	const unsigned before = fake_requests();
	DAT_CR_HANDLE cr;

	(void)state;
	rig_part(&rig);
	rig_reset(&rig);
	assert_int_equal(rig_ask(&rig, DAT_TIMEOUT_INFINITE, NULL, 0), DAT_SUCCESS);
	cr = rig_request(&rig);
	for (unsigned i = 0; i < 3; i++) {
		fake_time_out();
		for (int ms = 0; ms < 5000 && fake_requests() < before + 2 + i; ms++)
			usleep(1000);
		assert_int_equal(fake_requests(), before + 2 + i);
		usleep(20000); /* the identifier of the previous request is destroyed by then */
		rig_no_event(rig.a.conn);
	}
	rig_no_event(rig.requests);
	assert_int_equal(core_cr_accept(cr, rig.b.ep, 0, NULL), DAT_SUCCESS);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_ESTABLISHED);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* TCP uses the local port that the connection manager has chosen: another one is tried. */
static void connect__local_port_taken__tried_again(void **state)
{
	static const int errors[] = {EADDRINUSE, EADDRNOTAVAIL};

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		rig_part(&rig);
		rig_reset(&rig);
		fake_fail_next("rdma_connect");
		fake_fail_with(errors[i]);
		assert_int_equal(rig_connect(&rig, NULL, 0), DAT_SUCCESS);
		assert_string_equal(fake_failed(), "rdma_connect");
		fake_fail_at(0);
		rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_ESTABLISHED);
		rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_ESTABLISHED);
	}
}

static void expect_live(int live)
{
	for (unsigned ms = 0; ms < RIG_WAIT_US / 1000 && fake_live() != live; ms++)
		usleep(1000);
	assert_int_equal(fake_live(), live);
}

/*
 * EP-DISC-40: the end does not wait for the answer. The connection manager does, before it destroys
 * the identifier. Its queue pair is gone when the answer has arrived.
 */
static void ep_disconnect__request_not_answered__ended_and_released_later(void **state)
{
	DAT_CR_HANDLE cr;
	int live;

	(void)state;
	rig_part(&rig);
	rig_reset(&rig);
	live = fake_live();
	assert_int_equal(rig_ask(&rig, DAT_TIMEOUT_INFINITE, NULL, 0), DAT_SUCCESS);
	cr = rig_request(&rig);
	assert_int_equal(core_ep_disconnect(rig.a.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_true(fake_live() > live + 1); /* more than the identifier of the request */
	assert_int_equal(core_cr_reject(cr), DAT_SUCCESS);
	expect_live(live);
	rig_no_event(rig.a.conn);
}

/* A device may overlook the confirmation until more bytes arrive: Writes of length 0 follow until
 * the peer has sent something. */
static void connect__peer_silent__a_few_writes_behind(void **state)
{
	unsigned before;

	(void)state;
	before = fake_posts();
	rig_part(&rig);
	rig_again(&rig);
	for (int i = 0; i < 5000 && fake_posts() < before + 2; i++)
		usleep(1000);
	assert_in_range(fake_posts(), before + 2, before + 4);
	rig_answer(&rig);
	rig_no_event(rig.a.conn);
}

static volatile sig_atomic_t pipes;

static void on_pipe(int number)
{
	(void)number;
	pipes++;
}

static void expect_pending(bool is_pending)
{
	sigset_t pending;

	assert_int_equal(sigpending(&pending), 0);
	assert_int_equal(sigismember(&pending, SIGPIPE), is_pending);
}

static void send_some(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(rig_recv(&rig, &rig.b, 64, 1), DAT_SUCCESS);
		assert_int_equal(rig_send(&rig, &rig.a, 64, 2, 0), DAT_SUCCESS);
		rig_expect_dto(&rig.a, 2, DAT_DTO_SUCCESS);
		rig_expect_dto(&rig.b, 1, DAT_DTO_SUCCESS);
	}
}

/* GEN-36: the SIGPIPE that siw raises is not delivered; one of the consumer's own stays pending */
static void post_send__siw_raises_sigpipe__kept_away(void **state)
{
	sigset_t pipe;

	(void)state;
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	fake_raise_pipe(true);
	signal(SIGPIPE, on_pipe);
	send_some(3);
	expect_pending(false);
	signal(SIGPIPE, SIG_IGN);
	send_some(100); /* the action is read again after some posts */
	expect_pending(false);
	signal(SIGPIPE, on_pipe);
	send_some(3);
	expect_pending(false);
	assert_int_equal(pipes, 0);

	assert_int_equal(pthread_sigmask(SIG_BLOCK, &pipe, NULL), 0);
	raise(SIGPIPE);
	send_some(1);
	expect_pending(true);
	fake_raise_pipe(false);
	assert_int_equal(pthread_sigmask(SIG_UNBLOCK, &pipe, NULL), 0);
	assert_int_equal(pipes, 1);
	signal(SIGPIPE, SIG_DFL);
}

/* Makes a region with local write alone. */
static DAT_LMR_CONTEXT make_sink(size_t len, DAT_RMR_CONTEXT *rmr_context)
{
	DAT_REGION_DESCRIPTION region = {.for_va = rig.memory};
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;

	assert_int_equal(core_lmr_create(rig.ia, DAT_MEM_TYPE_VIRTUAL, region, len, rig.pz,
					 DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &lmr, &context, rmr_context,
					 NULL, NULL),
			 DAT_SUCCESS);
	return context;
}

/* LMR-USE-15: iWARP needs remote write, which the consumer neither asks for nor gets */
static void post_rdma_read__into_local_write_memory__carried_out(void **state)
{
	DAT_RMR_CONTEXT rmr_context = 1;
	DAT_LMR_TRIPLET sink = {.lmr_context = make_sink(64, &rmr_context),
				.virtual_address = (uintptr_t)rig.memory,
				.segment_length = 64};
	DAT_RMR_TRIPLET from = {.rmr_context = rig.rkey,
				.target_address = (uintptr_t)rig.memory + RIG_LEN / 2,
				.segment_length = 64};

	(void)state;
	assert_int_equal(rmr_context, 0);
	memset(rig.memory, 0, 64);
	memset(rig.memory + RIG_LEN / 2, 0x5a, 64);
	assert_int_equal(core_ep_post_rdma_read(rig.a.ep, 1, &sink, (DAT_DTO_COOKIE){.as_64 = 1},
						&from, DAT_COMPLETION_DEFAULT_FLAG),
			 DAT_SUCCESS);
	rig_expect_dto(&rig.a, 1, DAT_DTO_SUCCESS);
	assert_memory_equal(rig.memory, rig.memory + RIG_LEN / 2, 64);
	rig_no_event(rig.a.conn);
}

/* Four Writes, whose success is held back while the peer answers no RDMA Read. */
static void check_verified_writes(void)
{
	fake_hold_reads(true);
	for (uint64_t i = 0; i < 4; i++) {
		memset(rig.memory, (int)i + 1, 64);
		assert_int_equal(rig_write(&rig, &rig.a, 64, i, DAT_COMPLETION_DEFAULT_FLAG),
				 DAT_SUCCESS);
	}
	assert_true(fake_reads() > 0);
	for (int i = 0; i < 20; i++) {
		rig_no_event(rig.a.dto);
		usleep(1000);
	}
	fake_hold_reads(false);
	for (uint64_t i = 0; i < 4; i++)
		rig_expect_dto(&rig.a, i, DAT_DTO_SUCCESS);
	assert_memory_equal(rig.memory, rig.memory + RIG_LEN / 2, 64);
}

/* COMPAT-41: a suppressed Write has no success to hold back */
static void post_rdma_write__read_behind_it_not_answered__not_complete(void **state)
{
	unsigned posts;

	(void)state;
	check_verified_writes();
	rig_answer(&rig);
	posts = fake_posts();
	assert_int_equal(rig_write(&rig, &rig.a, 64, 1, DAT_COMPLETION_SUPPRESS_FLAG), DAT_SUCCESS);
	assert_int_equal(fake_posts(), posts + 1);
}

/* COMPAT-41: also between endpoints that allow no RDMA Reads */
static void post_rdma_write__no_reads_allowed__completes_when_answered(void **state)
{
	(void)state;
	rig_part(&rig);
	rig_reset(&rig);
	assert_int_equal(rig_limit_reads(&rig.a, 0, 0), DAT_SUCCESS);
	assert_int_equal(rig_limit_reads(&rig.b, 0, 0), DAT_SUCCESS);
	assert_int_equal(rig_connect(&rig, NULL, 0), DAT_SUCCESS);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_ESTABLISHED);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_ESTABLISHED);
	check_verified_writes();
}

/* a sends, and b has no Receive: b is broken, a is notified, and both can connect again. */
static void check_no_receive_breaks(void)
{
	DAT_EVENT event;

	assert_int_equal(rig_send(&rig, &rig.a, 8, 1, DAT_COMPLETION_DEFAULT_FLAG), DAT_SUCCESS);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_BROKEN);
	event = rig_event(rig.a.conn);
	assert_true(event.event_number == DAT_CONNECTION_EVENT_BROKEN ||
		    event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_no_event(rig.a.conn);
	rig_no_event(rig.b.conn);
	rig_no_event(rig.b.dto);
	/* the Send has left: it is complete, or flushed with the end */
	event = rig_event(rig.a.dto);
	assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
	rig_no_event(rig.a.dto);
}

/* DTO-104: a message cannot wait for a Receive */
static void post_send__no_receive__broken(void **state)
{
	(void)state;
	check_no_receive_breaks();
	rig_again(&rig);
	assert_int_equal(rig_recv(&rig, &rig.b, 8, 2), DAT_SUCCESS);
	assert_int_equal(rig_send(&rig, &rig.a, 8, 3, DAT_COMPLETION_DEFAULT_FLAG), DAT_SUCCESS);
	rig_expect_dto(&rig.a, 3, DAT_DTO_SUCCESS);
	rig_expect_dto(&rig.b, 2, DAT_DTO_SUCCESS);
	check_no_receive_breaks();
}

/* SRQ-USE-08 SRQ-USE-10 DTO-104: the same with an empty SRQ, which stays operational */
static void post_send__empty_srq__broken(void **state)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = 8, .max_recv_iov = 1, .low_watermark = DAT_SRQ_LW_DEFAULT};
	DAT_LMR_TRIPLET seg = rig_seg(&rig, RIG_LEN / 2, 64);
	DAT_EP_PARAM param;
	DAT_SRQ_HANDLE srq;

	(void)state;
	rig_part(&rig);
	rig_reset(&rig);
	assert_int_equal(core_srq_create(rig.ia, rig.pz, &attr, &srq), DAT_SUCCESS);
	assert_int_equal(core_ep_query(rig.b.ep, DAT_EP_FIELD_ALL, &param), DAT_SUCCESS);
	param.ep_attr.max_recv_dtos = DAT_HW_DEFAULT;
	assert_int_equal(core_ep_free(rig.b.ep), DAT_SUCCESS);
	assert_int_equal(core_ep_create_with_srq(rig.ia, rig.pz, rig.b.dto, rig.b.dto, rig.b.conn,
						 srq, &param.ep_attr, &rig.b.ep),
			 DAT_SUCCESS);
	for (int i = 0; i < 2; i++) {
		rig_reset(&rig);
		assert_int_equal(rig_connect(&rig, NULL, 0), DAT_SUCCESS);
		rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_ESTABLISHED);
		rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_ESTABLISHED);
		assert_int_equal(core_srq_post_recv(srq, 1, &seg, (DAT_DTO_COOKIE){.as_64 = 2}),
				 DAT_SUCCESS);
		assert_int_equal(rig_send(&rig, &rig.a, 8, 3, DAT_COMPLETION_DEFAULT_FLAG),
				 DAT_SUCCESS);
		rig_expect_dto(&rig.a, 3, DAT_DTO_SUCCESS);
		rig_expect_dto(&rig.b, 2, DAT_DTO_SUCCESS);
		check_no_receive_breaks();
	}
}

/* EP-RDMAW-08: a Write of length 0 accesses nothing, and no Read verifies it */
static void post_rdma_write__zero_length__not_verified(void **state)
{
	DAT_RMR_TRIPLET nowhere = {.rmr_context = 0xdeadbeef};
	unsigned posts;

	(void)state;
	rig_answer(&rig);
	posts = fake_posts();
	assert_int_equal(core_ep_post_rdma_write(rig.a.ep, 0, NULL, (DAT_DTO_COOKIE){.as_64 = 1},
						 &nowhere, DAT_COMPLETION_DEFAULT_FLAG),
			 DAT_SUCCESS);
	rig_expect_dto(&rig.a, 1, DAT_DTO_SUCCESS);
	assert_int_equal(fake_posts(), posts + 1);
	rig_no_event(rig.a.conn);
}

/* LMR-CREATE-58: the second registration, for the targets of RDMA Reads, fails */
static void lmr_create__sink_refused__nothing_left(void **state)
{
	DAT_REGION_DESCRIPTION region = {.for_va = rig.memory};
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_CONTEXT rkey;
	DAT_LMR_HANDLE lmr;

	(void)state;
	fake_hold(true);
	fake_fail_at(2);
	assert_int_equal(core_lmr_create(rig.ia, DAT_MEM_TYPE_VIRTUAL, region, 64, rig.pz,
					 DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &lmr, &lkey, &rkey, NULL,
					 NULL),
			 DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_MEMORY);
	assert_string_equal(fake_failed(), "ibv_reg_mr");
	fake_hold(false); /* close_rig checks that nothing is left */
}

/* The active side has an SRQ, and a message arrives before the answer of the passive side. */
static DAT_SRQ_HANDLE receive_while_connecting(void)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = 8, .max_recv_iov = 1, .low_watermark = DAT_SRQ_LW_DEFAULT};
	DAT_LMR_TRIPLET seg = rig_seg(&rig, RIG_LEN / 2, 64);
	DAT_EP_PARAM param;
	DAT_SRQ_HANDLE srq;
	DAT_CR_HANDLE cr;

	rig_part(&rig);
	rig_reset(&rig);
	assert_int_equal(core_srq_create(rig.ia, rig.pz, &attr, &srq), DAT_SUCCESS);
	assert_int_equal(core_srq_post_recv(srq, 1, &seg, (DAT_DTO_COOKIE){.as_64 = 2}),
			 DAT_SUCCESS);
	assert_int_equal(core_ep_query(rig.a.ep, DAT_EP_FIELD_ALL, &param), DAT_SUCCESS);
	param.ep_attr.max_recv_dtos = DAT_HW_DEFAULT;
	assert_int_equal(core_ep_free(rig.a.ep), DAT_SUCCESS);
	assert_int_equal(core_ep_create_with_srq(rig.ia, rig.pz, rig.a.dto, rig.a.dto, rig.a.conn,
						 srq, &param.ep_attr, &rig.a.ep),
			 DAT_SUCCESS);
	assert_int_equal(rig_ask(&rig, RIG_WAIT_US, NULL, 0), DAT_SUCCESS);
	cr = rig_request(&rig);
	fake_hold(true);
	assert_int_equal(core_cr_accept(cr, rig.b.ep, 0, NULL), DAT_SUCCESS);
	fake_fill_buffers(1);
	rig_no_event(rig.a.dto);
	return srq;
}

static DAT_COUNT outstanding(DAT_SRQ_HANDLE srq)
{
	DAT_SRQ_PARAM param;

	assert_int_equal(core_srq_query(srq, DAT_SRQ_FIELD_ALL, &param), DAT_SUCCESS);
	return param.outstanding_dto_count;
}

/* SRQ-RECV-34 SRQ-USE-02 */
static void srq__message_before_established__delivered_after(void **state)
{
	DAT_SRQ_HANDLE srq;

	(void)state;
	srq = receive_while_connecting();
	assert_int_equal(outstanding(srq), 1);
	fake_hold(false);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_ESTABLISHED);
	rig_expect_dto(&rig.a, 2, DAT_DTO_SUCCESS);
	assert_int_equal(outstanding(srq), 0);
}

/* SRQ-RECV-34 EP-FREE-26: the buffer of a message that is never delivered is consumed */
static void ep_free__message_before_established__buffer_consumed(void **state)
{
	DAT_SRQ_HANDLE srq;

	(void)state;
	srq = receive_while_connecting();
	assert_int_equal(core_ep_free(rig.a.ep), DAT_SUCCESS);
	fake_hold(false); /* another thread destroys the identifier, which waits for its events */
	for (int ms = 0; ms < 5000 && outstanding(srq); ms++)
		usleep(1000);
	assert_int_equal(outstanding(srq), 0);
}

static int open_siw(void **state)
{
	fake_be_vendor(0x626d74);
	return open_rig(state);
}

static int close_siw(void **state)
{
	int rc = close_rig(state);

	fake_be_vendor(0);
	return rc;
}

/* CONN-GEN-03 CONN-GEN-11: iWARP pads nothing */
static void connect__foreign_peer__all_private_data_shown(void **state)
{
	(void)state;
	rig_expect_foreign(&rig, 255, 255);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define IWARP_TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)
#define SIW_TEST(name) cmocka_unit_test_setup_teardown(name, open_siw, close_siw)
		IWARP_TEST(post_recv__no_segments__message_of_size_zero),
		IWARP_TEST(connect__active_side_says_nothing__accept_completion_error),
		IWARP_TEST(connect__active_side_confirms_and_leaves__established_first),
		IWARP_TEST(connect__passive_side_ends_it_at_once__disconnected),
		IWARP_TEST(connect__consumer_takes_its_time__asked_again),
		IWARP_TEST(ep_disconnect__request_not_answered__ended_and_released_later),
		IWARP_TEST(connect__local_port_taken__tried_again),
		IWARP_TEST(connect__peer_silent__a_few_writes_behind),
		SIW_TEST(post_send__siw_raises_sigpipe__kept_away),
		IWARP_TEST(post_send__no_receive__broken),
		SIW_TEST(post_send__no_receive__broken),
		IWARP_TEST(post_send__empty_srq__broken),
		IWARP_TEST(post_rdma_read__into_local_write_memory__carried_out),
		SIW_TEST(post_rdma_read__into_local_write_memory__carried_out),
		IWARP_TEST(post_rdma_write__read_behind_it_not_answered__not_complete),
		SIW_TEST(post_rdma_write__read_behind_it_not_answered__not_complete),
		IWARP_TEST(post_rdma_write__no_reads_allowed__completes_when_answered),
		SIW_TEST(post_rdma_write__no_reads_allowed__completes_when_answered),
		IWARP_TEST(post_rdma_write__zero_length__not_verified),
		SIW_TEST(post_rdma_write__zero_length__not_verified),
		IWARP_TEST(lmr_create__sink_refused__nothing_left),
		IWARP_TEST(srq__message_before_established__delivered_after),
		IWARP_TEST(ep_free__message_before_established__buffer_consumed),
		IWARP_TEST(connect__foreign_peer__all_private_data_shown),
	};

	fake_be_iwarp(true);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
