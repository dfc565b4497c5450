// SPDX-License-Identifier: BSD-2-Clause
/* The kernel lacks memory for calls of the socket: the engine tries again later, and sleeps. */
#include "flow_stage.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <sys/epoll.h>

#define TRIES 4u	   /* that fail */
#define PAUSE_NS 10000000u /* at least, between two tries */
#define WAKES_MAX 8u	   /* of the service thread in that time: a request, deadlines */
#define LARGE 60000u

static const int errors[] = {ENOMEM, ENOBUFS};

/* --- calls that fail --- */

static struct shortage {
	const char *_Atomic call; /* NULL: none fails */
	int error;
	_Atomic unsigned count;	      /* of the calls; the last one works */
	uint64_t begun_ns[TRIES + 1]; /* of each */
	unsigned wakes[TRIES + 1];    /* how often epoll_wait had been called before it */
	sem_t over;
} shortage;

static _Atomic unsigned wakes;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void begin_shortage(const char *call, int error)
{
	shortage.error = error;
	assert_int_equal(sem_init(&shortage.over, 0, 0), 0);
	atomic_store(&shortage.count, 0);
	atomic_store(&shortage.call, call);
}

/* Waits for the call that works, and checks the time between the calls. */
static void end_shortage(bool is_asleep)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += WAIT_MS / 1000;
	assert_int_equal(sem_timedwait(&shortage.over, &end), 0);
	for (unsigned i = 0; i < TRIES; i++) {
		assert_true(shortage.begun_ns[i + 1] - shortage.begun_ns[i] >= PAUSE_NS);
		if (is_asleep)
			assert_in_range(shortage.wakes[i + 1] - shortage.wakes[i], 0, WAKES_MAX);
	}
}

/* Does that call of the engine fail now? The test uses the peer's socket itself. */
static bool is_short(const char *call, int fd)
{
	const char *which = atomic_load(&shortage.call);
	unsigned n;

	if (!which || strcmp(which, call) || fd == flow.fd)
		return false;
	n = atomic_fetch_add(&shortage.count, 1);
	if (n > TRIES)
		return false;
	shortage.begun_ns[n] = now_ns();
	shortage.wakes[n] = atomic_load(&wakes);
	if (n == TRIES) {
		atomic_store(&shortage.call, NULL);
		sem_post(&shortage.over);
		return false;
	}
	errno = shortage.error;
	return true;
}

#define WRAP(name, parameters, arguments)                                                          \
	ssize_t __real_##name parameters;                                                          \
	ssize_t __wrap_##name parameters;                                                          \
	ssize_t __wrap_##name parameters                                                           \
	{                                                                                          \
		return is_short(#name, fd) ? -1 : __real_##name arguments;                         \
	}

WRAP(recv, (int fd, void *bytes, size_t size, int flags), (fd, bytes, size, flags))
WRAP(iw_socket_recv, (int fd, void *bytes, size_t size, int flags), (fd, bytes, size, flags))
WRAP(iw_socket_recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
WRAP(iw_socket_sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))

int __real_epoll_wait(int fd, struct epoll_event *events, int most, int timeout);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int most, int timeout);

int __wrap_epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
	atomic_fetch_add(&wakes, 1);
	return __real_epoll_wait(fd, events, most, timeout);
}

/* --- receiving --- */

/* IWCM-37 GEN-38 */
static void recv__no_memory__sleeps_and_tries_again(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(errors); i++) {
		be_called(0);
		post_recv_at(0, 5);
		begin_shortage("iw_socket_recv", errors[i]);
		peer_send("bytes", 5);
		expect_dto(0, DAT_DTO_SUCCESS, 5);
		end_shortage(true);
		hang_up();
	}
}

/* IWCM-33 IWCM-37 GEN-38: the end of the stream, which epoll also reports, is behind the message */
static void recv__no_memory_and_fin__message_comes_first(void **state)
{
	(void)state;
	be_called(0);
	post_recv_at(0, 5);
	begin_shortage("iw_socket_recv", ENOMEM);
	peer_send("bytes", 5);
	assert_int_equal(shutdown(flow.fd, SHUT_WR), 0);
	expect_dto(0, DAT_DTO_SUCCESS, 5);
	end_shortage(true);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	end_flow();
}

static void poll_for_message(void)
{
	uint64_t give_up = now_ms() + WAIT_MS;
	DAT_EVENT event;

	while (DAT_GET_TYPE(core_evd_dequeue(stage.evd, &event)) == DAT_QUEUE_EMPTY)
		assert_true(now_ms() < give_up);
	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
}

/* IWCM-37: a thread that polls makes no tries in between either */
static void recv__no_memory_and_polled__tries_again_later(void **state)
{
	uint64_t begin = now_ms();

	(void)state;
	be_called(0);
	/* until the service thread has left the connection to this thread */
	while (now_ms() - begin < 50) {
		post_recv_at(0, 5);
		peer_send("bytes", 5);
		poll_for_message();
	}
	post_recv_at(0, 5);
	begin_shortage("iw_socket_recv", ENOMEM);
	peer_send("bytes", 5);
	poll_for_message();
	end_shortage(false);
	hang_up();
}

/* IWCM-37 GEN-38: while a payload is read into its target */
static void recvmsg__no_memory__sleeps_and_tries_again(void **state)
{
	const struct iw_ddp ddp = {.opcode = IW_OP_SEND, .msn = 1, .is_last = true};
	static uint8_t bytes[LARGE];
	struct fpdu fpdu;

	(void)state;
	make_pattern(bytes, sizeof(bytes));
	be_called(0);
	post_recv_at(0, LARGE);
	make_fpdu(&fpdu, &ddp, bytes, LARGE);
	put(flow.fd, fpdu.bytes, 100);
	expect_served();
	begin_shortage("iw_socket_recvmsg", ENOMEM);
	put(flow.fd, fpdu.bytes + 100, fpdu.size - 100);
	expect_dto(0, DAT_DTO_SUCCESS, LARGE);
	end_shortage(true);
	expect_pattern(flow.region, LARGE);
	hang_up();
}

/* MPA-37 IWCM-37 GEN-38 */
static void accepted__no_memory_for_the_first_fpdu__established(void **state)
{
	(void)state;
	be_called_by_own(0);
	begin_shortage("iw_socket_recv", ENOMEM);
	peer_write(1, 0, NULL, 0);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	end_shortage(true);
	hang_up();
}

/* --- sending --- */

static void expect_send(size_t size)
{
	struct taken taken;

	for (size_t at = 0; at < size; at += taken.size) {
		get_fpdu(&taken);
		assert_int_equal(taken.ddp.opcode, IW_OP_SEND);
		assert_int_equal(taken.ddp.mo, at);
		assert_memory_equal(taken.payload, flow.region + at, taken.size);
	}
}

/* IWCM-37 GEN-38: epoll would report that there is room; another post makes no try either */
static void sendmsg__no_memory__sleeps_and_tries_again(void **state)
{
	static const uint32_t sizes[] = {10, LARGE};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		be_called(0);
		peer_write(0, 0, NULL, 0);
		expect_served();
		make_pattern(flow.region, sizes[i]);
		begin_shortage("iw_socket_sendmsg", errors[i]);
		post_send_at(0, sizes[i], DAT_COMPLETION_DEFAULT_FLAG);
		post_send_at(0, 5, DAT_COMPLETION_DEFAULT_FLAG);
		expect_dto(0, DAT_DTO_SUCCESS, sizes[i]);
		expect_dto(0, DAT_DTO_SUCCESS, 5);
		end_shortage(true);
		expect_send(sizes[i]);
		expect_send(5);
		fill_memory();
		hang_up();
	}
}

/* --- the end --- */

/* TERM-07 IWCM-37 GEN-38 */
static void terminate__no_memory_for_it__sent_later(void **state)
{
	(void)state;
	be_called(0);
	begin_shortage("iw_socket_sendmsg", ENOBUFS);
	peer_write(0x1234, 0, "x", 1); /* no such STag */
	expect(DAT_CONNECTION_EVENT_BROKEN);
	end_shortage(true);
	expect_terminate(IW_ERROR(1, 1, 0), NULL);
	end_flow();
}

/* IWCM-29 IWCM-37 GEN-38: with and without a hang-up, which epoll always reports */
static void linger__no_memory__no_reset(void **state)
{
	(void)state;
	for (int has_fin = 0; has_fin < 2; has_fin++) {
		be_called(0);
		begin_shortage("recv", ENOMEM);
		if (has_fin)
			assert_int_equal(shutdown(flow.fd, SHUT_WR), 0);
		ok(core_ep_disconnect(flow.ep, DAT_CLOSE_ABRUPT_FLAG));
		expect(DAT_CONNECTION_EVENT_DISCONNECTED);
		end_shortage(true);
		assert_int_equal(wait_ready(flow.fd, POLLRDHUP) & POLLERR, 0);
		expect_end(flow.fd);
		end_flow();
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_sleepy, close_stage)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(recv__no_memory__sleeps_and_tries_again),
		TEST(recv__no_memory_and_fin__message_comes_first),
		TEST(recv__no_memory_and_polled__tries_again_later),
		TEST(recvmsg__no_memory__sleeps_and_tries_again),
		TEST(accepted__no_memory_for_the_first_fpdu__established),
		TEST(sendmsg__no_memory__sleeps_and_tries_again),
		TEST(terminate__no_memory_for_it__sent_later),
		TEST(linger__no_memory__no_reset),
	};

	return cmocka_run_group_tests(tests, provide, NULL);
}
