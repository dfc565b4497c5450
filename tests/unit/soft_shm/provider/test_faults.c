// SPDX-License-Identifier: BSD-2-Clause
/*
 * The whole provider on a system whose calls fail: each system call of set-up fails once in turn.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <sys/uio.h>

#include "faults_set_up.h"

static const struct fault create_faults[] = {
	{"core_slab_alloc", ENOMEM}, {"malloc", ENOMEM},	 {"calloc", ENOMEM},
	{"realloc", ENOMEM},	     {"socket", EMFILE},	 {"bind", ENOMEM},
	{"listen", ENOBUFS},	     {"getsockname", ENOBUFS},	 {"memfd_create", EMFILE},
	{"memfd_create", ENFILE},    {"ftruncate64", ENOSPC},	 {"mmap64", ENOMEM},
	{"madvise", EAGAIN},	     {"epoll_create1", EMFILE},	 {"epoll_ctl", ENOSPC},
	{"eventfd", EMFILE},	     {"pthread_create", EAGAIN},
};

/* --- scenes --- */

static void nothing(void)
{
	memset(&stage, 0, sizeof(stage));
}

static DAT_RETURN open_adapter(void)
{
	return core_ia_open_safe((DAT_NAME_PTR) "faulty", 8, &stage.async, &stage.ia);
}

static void opens_later(bool is_done)
{
	if (is_done)
		return;
	assert_ptr_equal(stage.ia, DAT_HANDLE_NULL);
	ok(open_adapter());
}

/* IA-OPEN-33 IA-OPEN-34 */
static void ia_open__a_system_call_fails__nothing_left(void **state)
{
	static const struct scene scene = {nothing, open_adapter, opens_later, FAULT_CALLER};

	(void)state;
	play_all(&scene, create_faults, COUNT(create_faults));
}

/* PSP-CRANY-13 GEN-20 */
static void psp_create_any__a_system_call_fails__nothing_left(void **state)
{
	/* for a qualifier that the consumer has chosen, that is another result */
	static const struct fault no_port = {"bind", EADDRINUSE};

	(void)state;
	play_all(&scene_listen, &no_port, 1);
	play_all(&scene_listen, create_faults, COUNT(create_faults));
}

static void knows_a_qualifier(void)
{
	stage_listen();
	ok(core_psp_free(stage.psp));
	stage.psp = DAT_HANDLE_NULL;
}

static DAT_RETURN listen_there(void)
{
	return core_psp_create(stage.ia, stage.qual, stage.evd, DAT_PSP_CONSUMER_FLAG, &stage.psp);
}

static void connects_there_later(bool is_done)
{
	if (!is_done)
		ok(listen_there()); /* the qualifier is free */
	ok(connect_a());
	assert_true(attempt_ends());
}

/* PSP-CREATE-21 GEN-20 */
static void psp_create__a_system_call_fails__nothing_left(void **state)
{
	static const struct scene scene = {knows_a_qualifier, listen_there, connects_there_later,
					   FAULT_CALLER};

	(void)state;
	play_all(&scene, create_faults, COUNT(create_faults));
}

static const struct fault set_up_faults[] = {
	{"core_slab_alloc", ENOMEM}, {"malloc", ENOMEM},    {"calloc", ENOMEM},
	{"socket", EMFILE},	     {"bind", ENOMEM},	    {"mmap64", ENOMEM},
	{"madvise", EAGAIN},	     {"connect", EAGAIN},   {"connect", ENOMEM},
	{"getsockopt", EINVAL},	     {"sendmsg", EINTR},    {"sendmsg", ETOOMANYREFS},
	{"sendmsg", EPIPE},	     {"epoll_ctl", ENOSPC}, {"memfd_create", EMFILE},
	{"ftruncate64", ENOSPC},
};

/* EP-CONNECT-42 EP-CONNECT-43 EP-CONNECT-22 */
static void ep_connect__a_system_call_fails__reported_once(void **state)
{
	(void)state;
	play_all(&scene_connect, set_up_faults, COUNT(set_up_faults));
}

/* A connection between the two has ended. */
static void stage_ended(void)
{
	stage_connected();
	ok(core_ep_disconnect(stage.a.ep, DAT_CLOSE_ABRUPT_FLAG));
	for (int sides = 0; sides < 2; sides++)
		assert_int_equal(next_event().event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	ok(core_ep_reset(stage.a.ep));
	ok(core_ep_reset(stage.b.ep));
	stage.a.is_established = false;
	stage.b.is_established = false;
}

static void ep_connect_again__a_system_call_fails__reported_once(void **state)
{
	static const struct scene scene = {stage_ended, connect_a, attempt_works_later,
					   FAULT_CALLER};

	(void)state;
	play_all(&scene, set_up_faults, COUNT(set_up_faults));
}

/* EP-CONNECT-24 EP-CONNECT-42: the system is asked where an address is, unless it is our own */
static void ep_connect__own_address__system_is_not_asked(void **state)
{
	struct sockaddr_in other = {.sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1)};

	(void)state;
	stage_listen();
	fault_arm("bind", 1, ENOMEM, FAULT_CALLER);
	assert_int_equal(DAT_GET_TYPE(connect_a_to((DAT_IA_ADDRESS_PTR)&other)),
			 DAT_INSUFFICIENT_RESOURCES);
	assert_true(fault_disarm());
	fault_arm("bind", 1, ENOMEM, FAULT_CALLER);
	ok(connect_a());
	assert_false(fault_disarm());
	assert_true(attempt_ends());
	stage_close();
}

/* CR-ACCEPT-28 */
static void cr_accept__a_system_call_fails__reported_once(void **state)
{
	(void)state;
	play_all(&scene_accept, set_up_faults, COUNT(set_up_faults));
	play_all(&scene_accept_other, set_up_faults, COUNT(set_up_faults));
}

/* EP-CONNECT-22 CONN-EVT-07: the service thread meets the fault: the attempt ends, or succeeds. */
static void attempt__a_system_call_of_the_service_fails__ends(void **state)
{
	static const struct fault faults[] = {
		{"core_slab_alloc", ENOMEM}, {"malloc", ENOMEM},	  {"calloc", ENOMEM},
		{"realloc", ENOMEM},	     {"accept4", EMFILE},	  {"mmap64", ENOMEM},
		{"madvise", EAGAIN},	     {"getsockopt", EINVAL},	  {"sendmsg", EPIPE},
		{"epoll_ctl", ENOSPC},	     {"process_vm_readv", EPERM},
	};

	(void)state;
	play_some(&scene_service, faults, COUNT(faults), 4);
}

static void attempt_again__a_system_call_of_the_service_fails__ends(void **state)
{
	static const struct fault faults[] = {
		{"malloc", ENOMEM}, {"calloc", ENOMEM},	   {"recvmsg", ECONNREFUSED},
		{"sendmsg", EPIPE}, {"epoll_ctl", ENOSPC}, {"socket", EMFILE},
	};
	static const struct scene scene = {stage_ended, connect_a, attempt_ends_somehow,
					   FAULT_OTHERS};

	(void)state;
	play_some(&scene, faults, COUNT(faults), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ia_open__a_system_call_fails__nothing_left),
		cmocka_unit_test(psp_create_any__a_system_call_fails__nothing_left),
		cmocka_unit_test(psp_create__a_system_call_fails__nothing_left),
		cmocka_unit_test(ep_connect__a_system_call_fails__reported_once),
		cmocka_unit_test(ep_connect__own_address__system_is_not_asked),
		cmocka_unit_test(ep_connect_again__a_system_call_fails__reported_once),
		cmocka_unit_test(cr_accept__a_system_call_fails__reported_once),
		cmocka_unit_test(attempt__a_system_call_of_the_service_fails__ends),
		cmocka_unit_test(attempt_again__a_system_call_of_the_service_fails__ends),
	};

	return cmocka_run_group_tests(tests, warm_up, NULL);
}
