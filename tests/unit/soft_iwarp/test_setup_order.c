// SPDX-License-Identifier: BSD-2-Clause
/* A result of a set-up that waits for the service thread, while something else happens: the result
 * comes first. The test holds that thread where it is about to wait for events. */
#include "flow_stage.h"

#include <netinet/tcp.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>

static _Atomic bool is_held;
static sem_t has_stopped, may_go_on;

int __real_epoll_wait(int fd, struct epoll_event *events, int most, int timeout);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int most, int timeout);

/* The adapter has a service thread for shared memory, too. */
static bool is_service(void)
{
	char name[16];

	return pthread_getname_np(pthread_self(), name, sizeof(name)) == 0 &&
	       strcmp(name, "dat-tcp") == 0;
}

int __wrap_epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
	if (is_service() && atomic_exchange(&is_held, false)) {
		sem_post(&has_stopped);
		while (sem_wait(&may_go_on) < 0)
			;
	}
	return __real_epoll_wait(fd, events, most, timeout);
}

/* The service thread serves a connection and then waits for the test. */
static void hold_service(void)
{
	int fd;

	assert_int_equal(sem_init(&has_stopped, 0, 0), 0);
	assert_int_equal(sem_init(&may_go_on, 0, 0), 0);
	atomic_store(&is_held, true);
	fd = dial(stage.qual);
	while (sem_wait(&has_stopped) < 0)
		;
	close(fd);
}

static void release_service(void)
{
	sem_post(&may_go_on);
}

/* The service thread is held; a foreign request has been accepted, and the reply to it has come. */
static int be_accepted_while_held(void)
{
	struct frame frame = make_enhanced(REQUEST, 0, WORDS(0, 4, 4), NULL, 0);
	int fd = dial(stage.qual);

	put_frame(fd, &frame);
	take_request();
	hold_service();
	accept_with(NULL, 0);
	get_frame(fd, REPLY);
	return fd;
}

/* Ends the peer's direction, and waits until the library's socket has that end. */
static void end_direction(int fd)
{
	struct tcp_info info;
	socklen_t size;

	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	do {
		size = sizeof(info);
		assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
	} while (info.tcpi_state != TCP_FIN_WAIT2);
}

/* MPA-38 */
static void accept__peer_ends_right_after_the_reply__established_first(void **state)
{
	int fd = be_accepted_while_held();

	(void)state;
	end_direction(fd);
	release_service();
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_closed(fd);
}

/* MPA-38 TERM-30: what breaks the connection comes after it, too */
static void accept__invalid_fpdu_right_after_the_reply__established_first(void **state)
{
	const uint8_t bad[20] = {0, 14, 0xc3}; /* DDP version 3 */
	int fd = be_accepted_while_held();

	(void)state;
	put(fd, bad, sizeof(bad));
	release_service();
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	close(fd);
}

/* MPA-38 CR-ACCEPT-30: the limit is for what the peer has to do */
static void accept__reply_sent_and_limit_over__established(void **state)
{
	int fd = be_accepted_while_held();
	uint64_t end = now_ms() + HASTY_MS + 10;

	(void)state;
	while (now_ms() < end)
		(void)poll(NULL, 0, 10);
	release_service();
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	close(fd);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* EP-CONNECT-16 IWCM-24: the error was known before the time was over */
static void connect__error_waits_and_time_is_over__unreachable(void **state)
{
	struct sockaddr_in elsewhere = {.sin_family = AF_INET,
					.sin_addr.s_addr = htonl(0xc6336401u)};
	uint64_t end;

	(void)state;
	hold_service();
	ok(core_ep_connect(stage.a, (DAT_IA_ADDRESS_PTR)&elsewhere, 1, 1000, 0, NULL,
			   DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	end = now_ms() + 10;
	while (now_ms() < end)
		(void)poll(NULL, 0, 1);
	release_service();
	expect(DAT_CONNECTION_EVENT_UNREACHABLE);
}

int main(void)
{
#define one(name) cmocka_unit_test_setup_teardown(name, open_stage, close_stage)
#define hasty(name) cmocka_unit_test_setup_teardown(name, open_hasty, close_stage)
	const struct CMUnitTest tests[] = {
		one(accept__peer_ends_right_after_the_reply__established_first),
		one(accept__invalid_fpdu_right_after_the_reply__established_first),
		one(connect__error_waits_and_time_is_over__unreachable),
		hasty(accept__reply_sent_and_limit_over__established),
	};

	return cmocka_run_group_tests_name("setup_order", tests, provide, NULL);
}
