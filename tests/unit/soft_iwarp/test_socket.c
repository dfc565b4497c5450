// SPDX-License-Identifier: BSD-2-Clause
/* The system calls of the data path are no cancellation points (transfer/access.h). */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "soft/iwarp/transfer/access.h"

struct calls {
	int fds[2];
	/* what the calls have returned */
	ssize_t sendmsg, recv, send_again, recvmsg;
};

/* Makes each call while a request to cancel this thread waits. */
static void *call_when_cancelled(void *argument)
{
	struct calls *calls = argument;
	char byte = 1;
	struct iovec iov = {&byte, 1};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

	pthread_cancel(pthread_self());
	calls->sendmsg = iw_socket_sendmsg(calls->fds[0], &message, 0);
	calls->recv = iw_socket_recv(calls->fds[1], &byte, 1, 0);
	calls->send_again = iw_socket_sendmsg(calls->fds[0], &message, 0);
	calls->recvmsg = iw_socket_recvmsg(calls->fds[1], &message, 0);
	pthread_testcancel();
	return NULL;
}

/* GEN-26: the callers hold locks; the request takes effect afterwards */
static void socket_calls__thread_is_cancelled__return(void **state)
{
	struct calls calls = {0};
	pthread_t thread;
	void *result;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, calls.fds), 0);
	assert_int_equal(pthread_create(&thread, NULL, call_when_cancelled, &calls), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_int_equal(calls.sendmsg, 1);
	assert_int_equal(calls.recv, 1);
	assert_int_equal(calls.send_again, 1);
	assert_int_equal(calls.recvmsg, 1);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	close(calls.fds[0]);
	close(calls.fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(socket_calls__thread_is_cancelled__return),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
