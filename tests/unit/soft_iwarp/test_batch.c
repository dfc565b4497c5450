// SPDX-License-Identifier: BSD-2-Clause
/* FPDUs whose payload is not copied: many in one system call, of which TCP takes only a part. */
#include "flow_stage.h"
#include "forced_mss.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <sys/epoll.h>

/* --- what TCP takes --- */

#define NO_CUT SIZE_MAX

static _Atomic size_t cut;   /* the next sendmsg takes so many bytes, if it has more; NO_CUT: all */
static _Atomic bool is_held; /* those behind it take nothing */
static _Atomic size_t largest; /* bytes that one sendmsg was given */

ssize_t __real_iw_socket_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_iw_socket_sendmsg(int fd, const struct msghdr *message, int flags);

static ssize_t send_beginning(int fd, const struct msghdr *message, int flags, size_t size)
{
	struct iovec iov[128];
	struct msghdr beginning = {.msg_iov = iov};

	assert_true(message->msg_iovlen <= COUNT_OF(iov));
	for (size_t i = 0; size; i++) {
		iov[i] = message->msg_iov[i];
		if (iov[i].iov_len > size)
			iov[i].iov_len = size;
		size -= iov[i].iov_len;
		beginning.msg_iovlen++;
	}
	return __real_iw_socket_sendmsg(fd, &beginning, flags);
}

ssize_t __wrap_iw_socket_sendmsg(int fd, const struct msghdr *message, int flags)
{
	size_t size = size_of(message);
	size_t most = atomic_exchange(&cut, NO_CUT);

	if (size > atomic_load(&largest))
		atomic_store(&largest, size);
	if (most != NO_CUT && most && most < size)
		return send_beginning(fd, message, flags, most);
	if (!most || atomic_load(&is_held)) {
		errno = EAGAIN;
		return -1;
	}
	return __real_iw_socket_sendmsg(fd, message, flags);
}

/* --- the service thread, which the test stops --- */

static _Atomic bool is_stopped;
static sem_t has_stopped, may_go_on;

int __real_epoll_wait(int fd, struct epoll_event *events, int most, int timeout);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int most, int timeout);

int __wrap_epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
	int count = __real_epoll_wait(fd, events, most, timeout);

	if (atomic_exchange(&is_stopped, false)) {
		sem_post(&has_stopped);
		while (sem_wait(&may_go_on) < 0)
			;
	}
	return count;
}

/* Returns when it does nothing more. There is an event for it. */
static void stop_service(void)
{
	assert_int_equal(sem_init(&has_stopped, 0, 0), 0);
	assert_int_equal(sem_init(&may_go_on, 0, 0), 0);
	atomic_store(&is_stopped, true);
	while (sem_wait(&has_stopped) < 0)
		;
}

static int open_uncut(void **state)
{
	atomic_store(&cut, NO_CUT);
	atomic_store(&is_held, false);
	return open_sleepy(state);
}

/* --- three FPDUs, from three segments of memory --- */

#define MSS 8220 /* for payloads a little larger than those that are copied */
#define HEAD (2u + 18u)
#define MOST ((MSS - 6u - 18u) & ~3u) /* payload of one FPDU */
#define REST 101u		      /* of the last one, which needs a pad */
#define SIZE (2u * MOST + REST)
#define TEN (HEAD + 10u + 2u + 4u) /* an FPDU with 10 bytes */
#define FULL (HEAD + MOST + 4u)
#define WHOLE (2u * FULL + HEAD + REST + 3u + 4u) /* of all three */

_Static_assert(HEAD + MOST + 4u == MSS, "a full FPDU fills a segment");

static uint8_t expected[SIZE];

/* A foreign responder without Reads, so that there are no proofs. */
static void be_calling_large(uint8_t flags)
{
	struct taken rtr;

	atomic_store(&forced_mss, MSS);
	be_calling_with(flags, 0, 0);
	get_fpdu(&rtr);
	make_pattern(expected, SIZE);
	/* the borders of the segments are in the second FPDU */
	memcpy(flow.region, expected, 9001);
	memcpy(flow.region + 20000, expected + 9001, 3);
	memcpy(flow.region + 30000, expected + 9004, SIZE - 9004);
}

static void post_batch(size_t cookie_at)
{
	DAT_LMR_TRIPLET list[4] = {segment_at(0, 9001), segment_at(20000, 3), segment_at(0, 0),
				   segment_at(30000, SIZE - 9004)};
	DAT_DTO_COOKIE cookie = {.as_64 = cookie_at};

	ok(core_ep_post_send(flow.ep, 4, list, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

/* Takes up to `count` FPDUs of a batch; get_fpdu() checks pads and CRC. */
static void take_batch(unsigned count)
{
	struct taken taken;
	size_t at = 0;

	for (unsigned i = 0; i < count; i++) {
		get_fpdu(&taken);
		assert_int_equal(taken.ddp.opcode, IW_OP_SEND);
		assert_int_equal(taken.ddp.mo, at);
		assert_int_equal(taken.size, i < 2 ? MOST : REST);
		assert_int_equal(taken.ddp.is_last, i == 2);
		assert_memory_equal(taken.payload, expected + at, taken.size);
		at += taken.size;
	}
}

/* MPA-47 DDP-08 RDMAP-15: the stream is the same wherever TCP stops taking */
static void batch__cut_at_every_byte__same_stream(void **state)
{
	(void)state;
	for (int has_crc = 0; has_crc < 2; has_crc++) {
		be_calling_large(has_crc ? FLAG_C : 0);
		atomic_store(&largest, 0);
		for (size_t at = 1; at <= WHOLE; at++) {
			atomic_store(&cut, at);
			post_batch(0);
			take_batch(3);
			expect_dto(0, DAT_DTO_SUCCESS, SIZE);
		}
		assert_int_equal(atomic_load(&largest), WHOLE);
		fill_memory();
		hang_up();
	}
	atomic_store(&forced_mss, 0);
}

/* Around the borders of heads, segments of memory, tails and FPDUs, in ascending order. */
static const size_t borders[] = {0,
				 1,
				 HEAD - 1,
				 HEAD,
				 HEAD + 1,
				 HEAD + MOST,
				 HEAD + MOST + 1,
				 FULL - 1,
				 FULL,
				 FULL + 1,
				 FULL + HEAD + 9001 - MOST,
				 FULL + HEAD + 9004 - MOST,
				 2 * FULL - 4,
				 2 * FULL,
				 2 * FULL + 1,
				 2 * FULL + HEAD + REST,
				 WHOLE - 4,
				 WHOLE - 1};

/* RDMAP-32 DTO-116: TCP takes a part, and the rest after a while: the Send completes then */
static void batch__blocked_at_a_border__completes_with_the_rest(void **state)
{
	(void)state;
	for (int has_crc = 0; has_crc < 2; has_crc++) {
		be_calling_large(has_crc ? FLAG_C : 0);
		for (size_t i = 0; i < COUNT_OF(borders); i++) {
			atomic_store(&is_held, true);
			atomic_store(&cut, borders[i]);
			post_batch(i);
			expect_served();
			expect_quiet(stage.evd);
			atomic_store(&is_held, false);
			take_batch(3);
			expect_dto(i, DAT_DTO_SUCCESS, SIZE);
		}
		fill_memory();
		hang_up();
	}
	atomic_store(&forced_mss, 0);
}

/* MPA-59: the connection ends behind the FPDU that has begun */
static void batch__disconnected_at_a_border__ends_with_a_whole_fpdu(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * COUNT_OF(borders); i++) {
		size_t at = borders[i / 2];

		be_calling_large(i % 2 ? FLAG_C : 0);
		atomic_store(&is_held, true);
		atomic_store(&cut, at);
		post_batch(0);
		ok(core_ep_disconnect(flow.ep, DAT_CLOSE_ABRUPT_FLAG));
		fill_memory();
		expect_dto(0, DAT_DTO_ERR_FLUSHED, 0);
		expect(DAT_CONNECTION_EVENT_DISCONNECTED);
		atomic_store(&is_held, false);
		take_batch((unsigned)((at + FULL - 1) / FULL));
		expect_end(flow.fd);
		end_flow();
	}
	atomic_store(&forced_mss, 0);
}

/*
 * MPA-59 DTO-09 IWCM-45: a thread of the consumer finds a Terminate and completes the request,
 * whose memory the consumer then uses for something else; the service thread sends the rest later.
 */
static void batch__terminated_at_a_border__rest_is_of_that_time(void **state)
{
	const uint8_t payload[4] = {0};

	(void)state;
	for (size_t i = 0; i < 2 * COUNT_OF(borders); i++) {
		size_t at = borders[i / 2];

		be_calling_large(i % 2 ? FLAG_C : 0);
		peer_send(NULL, 0);
		expect_served();
		atomic_store(&is_held, true);
		atomic_store(&cut, at);
		post_batch(0);
		stop_service(); /* which tries to send without end */
		peer_terminate(payload, sizeof(payload));
		post_recv_at(1, 0);
		expect_dto(1, DAT_DTO_SUCCESS, 0);
		expect_dto(0, DAT_DTO_ERR_REMOTE_RESPONDER, 0);
		fill_memory();
		sem_post(&may_go_on);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		atomic_store(&is_held, false);
		take_batch((unsigned)((at + FULL - 1) / FULL));
		expect_end(flow.fd);
		end_flow();
	}
	atomic_store(&forced_mss, 0);
}

/* A batch of two segments of memory: the first FPDU, and the rest in another region. */
static void post_two_regions(DAT_LMR_CONTEXT rest)
{
	DAT_LMR_TRIPLET list[2] = {segment_at(0, MOST), segment_at(MOST, SIZE - MOST)};
	DAT_DTO_COOKIE cookie = {.as_64 = 0};

	list[1].lmr_context = rest;
	memcpy(flow.region, expected, SIZE);
	ok(core_ep_post_send(flow.ep, 2, list, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

/* Does the FPDU that has begun there still need bytes of the second region? */
static bool needs_rest(size_t at)
{
	size_t payload = at < 2 * FULL ? MOST : REST;

	return at > FULL && at % FULL && at % FULL < HEAD + payload;
}

/* TERM-09 TERM-15 MPA-59: nothing that was sent is destroyed if the FPDU that has begun, or none,
 * can be finished; else TCP is reset */
static void batch__region_freed_at_a_border__terminate_if_possible(void **state)
{
	(void)state;
	/* up to the end of the payload */
	for (size_t i = 0; borders[i / 2] < 2 * FULL + HEAD + REST; i++) {
		DAT_REGION_DESCRIPTION region = {.for_va = flow.region};
		size_t at = borders[i / 2];
		bool is_lost = needs_rest(at);
		struct taken taken;
		DAT_LMR_CONTEXT rest;
		DAT_LMR_HANDLE lmr;

		be_calling_large(i % 2 ? FLAG_C : 0);
		ok(core_lmr_create(stage.ia, DAT_MEM_TYPE_VIRTUAL, region, REGION, stage.pz,
				   DAT_MEM_PRIV_ALL_FLAG, &lmr, &rest, NULL, NULL, NULL));
		post_send_at(40000, 10, 0);
		expect_dto(40000, DAT_DTO_SUCCESS, 10);
		atomic_store(&is_held, true);
		atomic_store(&cut, at);
		post_two_regions(rest);
		ok(core_lmr_free(lmr));
		atomic_store(&is_held, false);
		expect_dto(0, DAT_DTO_ERR_LOCAL_PROTECTION, 0);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		assert_int_equal((wait_ready(flow.fd, POLLRDHUP) & POLLERR) != 0, is_lost);
		if (!is_lost) {
			get_fpdu(&taken);
			assert_int_equal(taken.size, 10);
			take_batch((unsigned)((at + FULL - 1) / FULL));
			expect_terminate(IW_ERROR(0, 0, 0), NULL);
		}
		fill_memory();
		end_flow();
	}
	atomic_store(&forced_mss, 0);
}

/* MPA-18: small FPDUs that wait already go first, in the same call */
static void batch__behind_small_fpdus__one_call(void **state)
{
	static const size_t cuts[] = {
		NO_CUT, 1, TEN, 2 * TEN - 1, 2 * TEN, 2 * TEN + 1, 2 * TEN + HEAD, 2 * TEN + FULL};
	struct taken taken;

	(void)state;
	atomic_store(&forced_mss, MSS);
	for (size_t i = 0; i < COUNT_OF(cuts); i++) {
		be_called(0);
		make_pattern(flow.region, SIZE);
		make_pattern(expected, SIZE);
		post_send_at(0, 10, 0);
		post_send_at(1, 10, 0);
		post_send_at(0, SIZE, 0);
		expect_served();
		atomic_store(&largest, 0);
		atomic_store(&cut, cuts[i]);
		peer_write(0, 0, NULL, 0);
		get_fpdu(&taken);
		assert_memory_equal(taken.payload, flow.region, 10);
		get_fpdu(&taken);
		assert_memory_equal(taken.payload, flow.region + 1, 10);
		take_batch(3);
		expect_dto(0, DAT_DTO_SUCCESS, 10);
		expect_dto(1, DAT_DTO_SUCCESS, 10);
		expect_dto(0, DAT_DTO_SUCCESS, SIZE);
		assert_int_equal(atomic_load(&largest), 2 * TEN + WHOLE);
		fill_memory();
		hang_up();
	}
	atomic_store(&forced_mss, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_uncut, close_stage)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(batch__cut_at_every_byte__same_stream),
		TEST(batch__blocked_at_a_border__completes_with_the_rest),
		TEST(batch__disconnected_at_a_border__ends_with_a_whole_fpdu),
		TEST(batch__terminated_at_a_border__rest_is_of_that_time),
		TEST(batch__region_freed_at_a_border__terminate_if_possible),
		TEST(batch__behind_small_fpdus__one_call),
	};

	return cmocka_run_group_tests(tests, provide, NULL);
}
