// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ia_close: what a graceful close refuses, instances that share an asynchronous EVD, and wrong
 * arguments. test_ia_close_abrupt.c tests the abrupt close.
 */
#include "waiter.h"

static void refuse_graceful(DAT_IA_HANDLE ia)
{
	dt_fails_with(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_IA_IN_USE);
}

/* --- graceful --- */

/* IA-CLOSE-01 */
static void close_flags__of_the_header__values(void **state)
{
	(void)state;
	assert_int_equal(DAT_CLOSE_ABRUPT_FLAG, 0x00);
	assert_int_equal(DAT_CLOSE_GRACEFUL_FLAG, 0x01);
	assert_int_equal(DAT_CLOSE_DEFAULT, DAT_CLOSE_ABRUPT_FLAG);
}

/* IA-CLOSE-02 IA-CLOSE-03 IA-CLOSE-14 COMPAT-17 */
static void ia_close__only_its_own_evd_left__success(void **state)
{
	static const DAT_CLOSE_FLAGS flags[] = {DAT_CLOSE_GRACEFUL_FLAG, DAT_CLOSE_ABRUPT_FLAG};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(flags); i++) {
		DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
		DAT_EVD_PARAM param;
		DAT_IA_HANDLE ia;

		dt_ok(dat_ia_open((DAT_NAME_PTR)(uintptr_t)dt_adapter(), 8, &async, &ia));
		dt_ok(dat_ia_close(ia, flags[i]));
		dt_fails(dat_evd_query(async, DAT_EVD_FIELD_ALL, &param), DAT_INVALID_HANDLE);
		dt_fails(dat_evd_free(async), DAT_INVALID_HANDLE);
	}
}

/* IA-CLOSE-04 IA-CLOSE-05 EP-GEN-12 COMPAT-17: one object at a time, with those that it needs */
static void ia_close__graceful_with_an_object_of_each_kind__invalid_state(void **state)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, evd;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	DAT_RMR_HANDLE rmr;
	DAT_CNO_HANDLE cno;
	DAT_SRQ_ATTR srq_attr = {4, 1, DAT_SRQ_LW_DEFAULT};
	DAT_SRQ_HANDLE srq;
	DAT_EP_HANDLE ep;
	struct dt_ia ia = {.pz = DAT_HANDLE_NULL};
	struct dt_buf buf;

	(void)state;
	dt_ok(dat_ia_open((DAT_NAME_PTR)(uintptr_t)dt_adapter(), 8, &async, &ia.ia));
	dt_ok(dat_pz_create(ia.ia, &ia.pz));
	refuse_graceful(ia.ia); /* a zone alone */
	dt_buf_create(&ia, ia.pz, &buf, 4096, DAT_MEM_PRIV_ALL_FLAG);
	refuse_graceful(ia.ia); /* a region and its zone */
	dt_buf_free(&buf);
	dt_ok(dat_rmr_create(ia.pz, &rmr));
	refuse_graceful(ia.ia);
	dt_ok(world_query(DAT_HANDLE_TYPE_RMR, rmr));
	dt_ok(dat_rmr_free(rmr));
	dt_ok(dat_srq_create(ia.ia, ia.pz, &srq_attr, &srq));
	refuse_graceful(ia.ia);
	dt_ok(world_query(DAT_HANDLE_TYPE_SRQ, srq));
	dt_ok(dat_srq_free(srq));
	dt_ok(dat_pz_free(ia.pz));
	dt_ok(dat_cno_create(ia.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	refuse_graceful(ia.ia); /* a notification object alone */
	dt_ok(world_query(DAT_HANDLE_TYPE_CNO, cno));
	dt_ok(dat_cno_free(cno));
	dt_ok(dat_ep_create(ia.ia, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
			    DAT_HANDLE_NULL, NULL, &ep));
	refuse_graceful(ia.ia); /* an endpoint alone */
	assert_int_equal(dt_ep_state(ep), DAT_EP_STATE_UNCONNECTED);
	dt_ok(dat_ep_free(ep));
	evd = dt_evd_create(&ia, 4, DAT_EVD_CR_FLAG);
	refuse_graceful(ia.ia); /* an EVD alone */
	dt_no_event(evd);
	dt_ok(dat_psp_create_any(ia.ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	refuse_graceful(ia.ia);
	dt_ok(world_query(DAT_HANDLE_TYPE_PSP, psp));
	dt_ok(dat_psp_free(psp));
	dt_ok(dat_rsp_create(ia.ia, qual, DAT_HANDLE_NULL, evd, &rsp));
	refuse_graceful(ia.ia);
	dt_ok(world_query(DAT_HANDLE_TYPE_RSP, rsp));
	dt_ok(dat_rsp_free(rsp));
	dt_ok(dat_evd_free(evd));
	dt_ok(dat_ia_close(ia.ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* IA-CLOSE-04: every EVD counts if the open has made none */
static void ia_close__graceful_with_an_evd_and_no_own_one__invalid_state(void **state)
{
	struct dt_ia ia = {.pz = DAT_HANDLE_NULL};
	DAT_EVD_HANDLE async = DAT_EVD_ASYNC_EXISTS, evd;

	(void)state;
	dt_ok(dat_ia_open((DAT_NAME_PTR)(uintptr_t)dt_adapter(), 8, &async, &ia.ia));
	evd = dt_evd_create(&ia, 4, DAT_EVD_CR_FLAG);
	refuse_graceful(ia.ia);
	dt_no_event(evd);
	dt_ok(dat_evd_free(evd));
	dt_ok(dat_ia_close(ia.ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* IA-CLOSE-05 COMPAT-17 */
static void ia_close__graceful_refused__everything_works(void **state)
{
	struct world world;
	struct dt_pair pair;
	struct dt_buf buf;

	(void)state;
	world_open(&world);
	for (int i = 0; i < 3; i++)
		refuse_graceful(world.ia.ia);
	world_check_alive(&world);
	world_close(&world);
	dt_pair_open(&pair);
	dt_buf_create(&pair.ia, pair.ia.pz, &buf, 4096, DAT_MEM_PRIV_ALL_FLAG);
	refuse_graceful(pair.ia.ia);
	conf_write(&pair, dt_seg(&buf, 0, 64), dt_rseg(&buf, 64, 64));
	conf_send(&pair, dt_seg(&buf, 0, 64), dt_seg(&buf, 64, 64));
	dt_no_event(pair.a.conn);
	dt_buf_free(&buf);
	dt_pair_close(&pair);
}

/* IA-CLOSE-06 EP-STATE-81 */
static void ia_close__graceful_with_an_unanswered_request__destroys_it(void **state)
{
	static const DAT_PSP_FLAGS flags[] = {DAT_PSP_CONSUMER_FLAG, DAT_PSP_PROVIDER_FLAG};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(flags); i++) {
		struct dt_ia passive, active;
		struct dt_listener listener;
		struct dt_ep ep;
		DAT_CR_HANDLE cr;

		dt_ia_open(&passive);
		dt_ia_open(&active);
		listener.evd = dt_evd_create(&passive, 8, DAT_EVD_CR_FLAG);
		dt_ok(dat_psp_create_any(passive.ia, &listener.qual, listener.evd, flags[i],
					 &listener.psp));
		dt_ep_create(&active, active.pz, NULL, &ep);
		dt_connect(&active, ep.ep, listener.qual);
		cr = dt_request(&listener);
		dt_unlisten(&listener);
		dt_ok(world_query(DAT_HANDLE_TYPE_CR, cr));
		dt_ia_close(&passive);
		dt_fails_with(world_query(DAT_HANDLE_TYPE_CR, cr), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_CR);
		dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		dt_ep_free(&ep);
		dt_ia_close(&active);
	}
}

/* --- borrowed asynchronous EVDs --- */

static void open_with(DAT_EVD_HANDLE async, struct dt_ia *ia)
{
	memset(ia, 0, sizeof(*ia));
	ia->async = async;
	dt_ok(dat_ia_open((DAT_NAME_PTR)(uintptr_t)dt_adapter(), 8, &ia->async, &ia->ia));
	dt_ok(dat_pz_create(ia->ia, &ia->pz));
}

/* IA-CLOSE-15 */
static void ia_close__borrower_of_an_evd__evd_and_its_waiters_stay(void **state)
{
	static const DAT_CLOSE_FLAGS flags[] = {DAT_CLOSE_GRACEFUL_FLAG, DAT_CLOSE_ABRUPT_FLAG};
	const struct timespec pause = {.tv_nsec = 20000000};
	struct dt_ia owner, borrower;
	struct waiter waiter;

	(void)state;
	dt_ia_open(&owner);
	start_waiter(&waiter, owner.async);
	for (size_t i = 0; i < COUNT_OF(flags); i++) {
		open_with(owner.async, &borrower);
		dt_ok(dat_pz_free(borrower.pz));
		dt_ok(dat_ia_close(borrower.ia, flags[i]));
		dt_ok(world_query(DAT_HANDLE_TYPE_EVD, owner.async));
		nanosleep(&pause, NULL); /* time for a wake-up, which would be wrong */
		assert_true(is_waited_on(owner.async));
	}
	dt_ia_abort(&owner);
	assert_int_equal(pthread_join(waiter.thread, NULL), 0);
	dt_fails(waiter.ret, DAT_ABORT);
}

/* IA-CLOSE-16 IA-CLOSE-05 */
static void ia_close__graceful_while_its_evd_is_borrowed__invalid_state(void **state)
{
	struct dt_ia owner, borrower;

	(void)state;
	dt_ia_open(&owner);
	dt_ok(dat_pz_free(owner.pz));
	owner.pz = DAT_HANDLE_NULL;
	open_with(owner.async, &borrower);
	refuse_graceful(owner.ia);
	dt_ok(world_query(DAT_HANDLE_TYPE_EVD, owner.async));
	dt_ia_close(&borrower);
	dt_ia_close(&owner);
}

/* IA-CLOSE-24 */
static void ia_close__abrupt_while_its_evd_is_borrowed__borrower_works(void **state)
{
	DAT_EVD_HANDLE async = DAT_EVD_OUT_OF_SCOPE;
	struct dt_ia owner, borrower;
	struct dt_ep a, b;
	struct dt_buf buf;

	(void)state;
	dt_ia_open(&owner);
	open_with(owner.async, &borrower);
	dt_ok(dat_ia_query(borrower.ia, NULL, DAT_IA_FIELD_ALL, &borrower.attr, 0, NULL));
	dt_ia_abort(&owner);
	dt_ok(dat_ia_query(borrower.ia, &async, 0, NULL, 0, NULL));
	assert_null(async);
	dt_ep_create(&borrower, borrower.pz, NULL, &a);
	dt_ep_create(&borrower, borrower.pz, NULL, &b);
	dt_ep_link(&borrower, &a, &b);
	/* More flushed Receives than their EVD holds, and no asynchronous EVD for the overflow. */
	dt_buf_create(&borrower, borrower.pz, &buf, 64, CONF_LOCAL);
	dt_ok(dat_evd_resize(b.recv, 1));
	for (int i = 0; i < 4; i++)
		dt_ok(dat_ep_post_recv(b.ep, 0, NULL, dt_cookie(1), 0));
	dt_ok(dat_ep_disconnect(a.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(b.conn, b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_conn(a.conn, a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_buf_free(&buf);
	dt_ep_free(&a);
	dt_ep_free(&b);
	dt_ia_close(&borrower);
}

/* --- refusals --- */

/* IA-CLOSE-17 */
static void ia_close__no_instance__invalid_handle(void **state)
{
	static const DAT_CLOSE_FLAGS flags[] = {DAT_CLOSE_GRACEFUL_FLAG, DAT_CLOSE_ABRUPT_FLAG};
	struct dt_ia ia, closed;

	(void)state;
	dt_ia_open(&ia);
	dt_ia_open(&closed);
	const DAT_IA_HANDLE bad[] = {DAT_HANDLE_NULL,
				     closed.ia,
				     ia.pz,
				     ia.async,
				     (DAT_IA_HANDLE)(uintptr_t)0x7ffffff1,
				     (char *)ia.async + 1};

	dt_ia_close(&closed);
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		for (size_t j = 0; j < COUNT_OF(flags); j++)
			dt_fails_with(dat_ia_close(bad[i], flags[j]), DAT_INVALID_HANDLE,
				      DAT_INVALID_HANDLE_IA);
	dt_ok(world_query(DAT_HANDLE_TYPE_PZ, ia.pz));
	dt_ia_close(&ia);
}

/* IA-CLOSE-18 */
static void ia_close__undefined_flags__invalid_parameter(void **state)
{
	static const unsigned flags[] = {2, 3, 4, 0x10, 0x11, 0x80, 0x40000001};
	struct dt_ia ia;

	(void)state;
	dt_ia_open(&ia);
	for (size_t i = 0; i < COUNT_OF(flags); i++)
		dt_fails_with(dat_ia_close(ia.ia, (DAT_CLOSE_FLAGS)flags[i]), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG2);
	dt_ok(world_query(DAT_HANDLE_TYPE_PZ, ia.pz));
	dt_ok(dat_pz_free(ia.pz));
	for (size_t i = 0; i < COUNT_OF(flags); i++)
		dt_fails_with(dat_ia_close(ia.ia, (DAT_CLOSE_FLAGS)flags[i]), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG2);
	dt_ok(dat_ia_close(ia.ia, DAT_CLOSE_GRACEFUL_FLAG));
}

struct one_ia {
	DAT_IA_HANDLE ia;
	atomic_int closed, unexpected;
};

static void *close_it(void *arg)
{
	struct one_ia *one = arg;
	const DAT_RETURN ret = dat_ia_close(one->ia, DAT_CLOSE_ABRUPT_FLAG);

	if (ret == DAT_SUCCESS)
		atomic_fetch_add(&one->closed, 1);
	else if (DAT_GET_TYPE(ret) != DAT_INVALID_HANDLE)
		atomic_fetch_add(&one->unexpected, 1);
	return NULL;
}

/* IA-CLOSE-25 GEN-26 */
static void ia_close__same_instance_in_parallel__closed_once(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++) {
		struct one_ia one = {.closed = 0};
		struct dt_ia ia;

		dt_ia_open(&ia);
		one.ia = ia.ia;
		conf_parallel(close_it, &one);
		assert_int_equal(one.closed, 1);
		assert_int_equal(one.unexpected, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(close_flags__of_the_header__values),
		cmocka_unit_test(ia_close__only_its_own_evd_left__success),
		cmocka_unit_test(ia_close__graceful_with_an_object_of_each_kind__invalid_state),
		cmocka_unit_test(ia_close__graceful_with_an_evd_and_no_own_one__invalid_state),
		cmocka_unit_test(ia_close__graceful_refused__everything_works),
		cmocka_unit_test(ia_close__graceful_with_an_unanswered_request__destroys_it),
		cmocka_unit_test(ia_close__borrower_of_an_evd__evd_and_its_waiters_stay),
		cmocka_unit_test(ia_close__graceful_while_its_evd_is_borrowed__invalid_state),
		cmocka_unit_test(ia_close__abrupt_while_its_evd_is_borrowed__borrower_works),
		cmocka_unit_test(ia_close__no_instance__invalid_handle),
		cmocka_unit_test(ia_close__undefined_flags__invalid_parameter),
		cmocka_unit_test(ia_close__same_instance_in_parallel__closed_once),
	};

	return cmocka_run_group_tests_name("ia close", tests, NULL, NULL);
}
