// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_psp_create and dat_psp_create_any: requirements on the public service points that both create
 * (most tests run for both). Their refusals are in test_psp_refused.c, endpoints made by the
 * provider in test_psp_provider.c.
 */
#include <pthread.h>

#include "conn_remote.h"
#include "psp_creators.h"

/* --- requests --- */

/* PSP-CREATE-01 PSP-CREATE-02 PSP-CREATE-07 PSP-CREATE-22 PSP-CRANY-01 PSP-CRANY-15 PSP-CRANY-16
 * CONN-EVT-11 CONN-EVT-12 CONN-EVT-13 CONN-EVT-15 CONN-EVT-16 CONN-EVT-01 */
static void psp_create__then_connect__request_on_its_evd(void **state)
{
	struct conn_fixture *f = *state;

	for (unsigned int i = 0; i < 40; i++) {
		DAT_CONN_QUAL qual;
		DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
		DAT_EVENT event;
		const DAT_CR_ARRIVAL_EVENT_DATA *data;

		dt_ok(creators[i & 1](f, f->listener.evd, DAT_PSP_CONSUMER_FLAG, &qual, &psp));
		assert_non_null(psp);
		dt_connect(&f->ia, f->a.ep, qual);
		event = conn_request_event(f->listener.evd);
		data = &event.event_data.cr_arrival_event_data;
		assert_ptr_equal(event.evd_handle, f->listener.evd);
		assert_ptr_equal(data->sp_handle.psp_handle, psp);
		assert_true(data->conn_qual == qual);
		conn_check_same_address((struct sockaddr *)data->local_ia_address_ptr,
					(struct sockaddr *)f->ia.attr.ia_address_ptr);
		assert_ptr_equal(conn_cr_query(data->cr_handle).local_ep_handle, DAT_HANDLE_NULL);
		dt_no_event(f->listener.evd);
		dt_ok(dat_cr_reject(data->cr_handle));
		conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
		dt_ok(dat_ep_reset(f->a.ep));
		dt_ok(dat_psp_free(psp));
	}
}

#define MANY 12

/* Leaves MANY requests to a PSP waiting; returns their CRs in the order of eps. */
static void open_requests(struct conn_fixture *f, DAT_CONN_QUAL qual, DAT_EVD_HANDLE evd,
			  struct dt_ep *eps, DAT_CR_HANDLE *crs)
{
	for (size_t i = 0; i < MANY; i++) {
		dt_ep_create(&f->ia, f->ia.pz, NULL, &eps[i]);
		dt_connect(&f->ia, eps[i].ep, qual);
	}
	memset(crs, 0, MANY * sizeof(crs[0]));
	for (size_t i = 0; i < MANY; i++) {
		const DAT_CR_HANDLE cr = conn_request(evd);
		const DAT_PORT_QUAL port = conn_cr_query(cr).remote_port_qual;
		size_t owner = 0;

		while (owner < MANY && conn_ep_query(eps[owner].ep).local_port_qual != port)
			owner++;
		assert_true(owner < MANY);
		assert_null(crs[owner]); /* each request once */
		crs[owner] = cr;
	}
	dt_stays_empty(evd);
}

/* PSP-CREATE-03 PSP-CREATE-04 PSP-CREATE-05 PSP-CRANY-15 CR-REJECT-08 CONN-GEN-06 CONN-EVT-11 */
static void psp__many_requests__answered_in_any_order(void **state)
{
	struct conn_fixture *f = *state;

	for (size_t way = 0; way < COUNT_OF(creators); way++) {
		const DAT_EVD_HANDLE evd = dt_evd_create(&f->ia, MANY, DAT_EVD_CR_FLAG);
		struct dt_ep eps[MANY];
		DAT_CR_HANDLE crs[MANY];
		DAT_CONN_QUAL qual;
		DAT_PSP_HANDLE psp;

		dt_ok(creators[way](f, evd, DAT_PSP_CONSUMER_FLAG, &qual, &psp));
		open_requests(f, qual, evd, eps, crs);
		/* from the last to the first; every third is accepted */
		for (size_t i = MANY; i-- > 0;) {
			if (i % 3) {
				dt_ok(dat_cr_reject(crs[i]));
				conn_expect_failure(&eps[i], DAT_CONNECTION_EVENT_PEER_REJECTED);
				continue;
			}
			dt_ok(dat_cr_accept(crs[i], f->b.ep, 0, NULL));
			dt_expect_conn(eps[i].conn, eps[i].ep, DAT_CONNECTION_EVENT_ESTABLISHED);
			dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
			conn_transfer(f, &eps[i], &f->b);
			dt_ok(dat_ep_disconnect(f->b.ep, DAT_CLOSE_ABRUPT_FLAG));
			dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
			dt_ok(dat_ep_reset(f->b.ep));
		}
		for (size_t i = 0; i < MANY; i++)
			dt_ep_free(&eps[i]);
		dt_ok(dat_psp_free(psp));
		dt_ok(dat_evd_free(evd));
	}
}

/* PSP-CREATE-06 PSP-CRANY-15 EP-CONNECT-21 */
static void psp__evd_full__further_requests_refused(void **state)
{
	struct conn_fixture *f = *state;
	const DAT_EVD_HANDLE evd = dt_evd_create(&f->ia, 2, DAT_EVD_CR_FLAG);
	struct dt_ep eps[5];
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;

	dt_ok(dat_psp_create_any(f->ia.ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	for (size_t i = 0; i < COUNT_OF(eps); i++) {
		dt_ep_create(&f->ia, f->ia.pz, NULL, &eps[i]);
		dt_connect(&f->ia, eps[i].ep, qual);
		if (i >= 2)
			conn_expect_failure(&eps[i], DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	}
	dt_no_event(f->ia.async); /* no overflow is reported */
	for (size_t i = 0; i < 2; i++) {
		dt_ok(dat_cr_reject(conn_request(evd)));
		conn_expect_failure(&eps[i], DAT_CONNECTION_EVENT_PEER_REJECTED);
	}
	dt_no_event(evd);
	/* there is room again */
	dt_ok(dat_ep_reset(eps[4].ep));
	dt_connect(&f->ia, eps[4].ep, qual);
	dt_ok(dat_cr_reject(conn_request(evd)));
	conn_expect_failure(&eps[4], DAT_CONNECTION_EVENT_PEER_REJECTED);
	dt_no_event(f->ia.async);
}

/* PSP-CREATE-23 */
static void psp__evd_shared_with_connection_events__both_arrive(void **state)
{
	struct conn_fixture *f = *state;
	struct dt_ep b = f->b;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;

	b.conn = dt_evd_create(&f->ia, 8, DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG);
	dt_ok(dat_ep_create(f->ia.ia, f->ia.pz, b.recv, b.request, b.conn, NULL, &b.ep));
	dt_ok(dat_psp_create_any(f->ia.ia, &qual, b.conn, DAT_PSP_CONSUMER_FLAG, &psp));
	dt_connect(&f->ia, f->a.ep, qual);
	dt_ok(dat_cr_accept(conn_request(b.conn), b.ep, 0, NULL));
	dt_expect_conn(b.conn, b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	conn_transfer(f, &f->a, &b);
}

/* PSP-CREATE-24 PSP-FREE-07 PSP-CRANY-15 */
static void psp__exists__evd_in_use(void **state)
{
	struct conn_fixture *f = *state;

	for (size_t way = 0; way < COUNT_OF(creators); way++) {
		const DAT_EVD_HANDLE evd = dt_evd_create(&f->ia, 8, DAT_EVD_CR_FLAG);
		DAT_CONN_QUAL qual;
		DAT_PSP_HANDLE psp;

		dt_ok(creators[way](f, evd, DAT_PSP_CONSUMER_FLAG, &qual, &psp));
		dt_fails_with(dat_evd_free(evd), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
		dt_connect(&f->ia, f->a.ep, qual);
		dt_ok(dat_cr_reject(conn_request(evd)));
		conn_expect_failure(&f->a, DAT_CONNECTION_EVENT_PEER_REJECTED);
		dt_ok(dat_ep_reset(f->a.ep));
		dt_ok(dat_psp_free(psp));
		dt_ok(dat_evd_free(evd));
	}
}

/* --- qualifiers --- */

/* PSP-CREATE-16 RSP-CREATE-16 */
static void psp_create__qualifier_in_use__refused(void **state)
{
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;
	const DAT_CONN_QUAL reserved = dt_unused_qual();
	struct dt_ia second;
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	DAT_CONN_QUAL theirs;

	/* by this instance */
	dt_fails(dat_psp_create(f->ia.ia, f->listener.qual, f->listener.evd, DAT_PSP_CONSUMER_FLAG,
				&psp),
		 DAT_CONN_QUAL_IN_USE);
	/* by an RSP */
	dt_ok(dat_rsp_create(f->ia.ia, reserved, f->b.ep, f->listener.evd, &rsp));
	dt_fails(dat_psp_create(f->ia.ia, reserved, f->listener.evd, DAT_PSP_CONSUMER_FLAG, &psp),
		 DAT_CONN_QUAL_IN_USE);
	/* by another instance of the same adapter */
	dt_ia_open(&second);
	theirs = f->listener.qual;
	dt_fails(dat_psp_create(second.ia, theirs, dt_evd_create(&second, 4, DAT_EVD_CR_FLAG),
				DAT_PSP_CONSUMER_FLAG, &psp),
		 DAT_CONN_QUAL_IN_USE);
	dt_ia_abort(&second);
	/* by another process, in both directions */
	theirs = remote_do(&r->peer, REMOTE_LISTEN, 0, 0);
	dt_fails(dat_psp_create(f->ia.ia, theirs, f->listener.evd, DAT_PSP_CONSUMER_FLAG, &psp),
		 DAT_CONN_QUAL_IN_USE);
	dt_fails(remote_ask(&r->peer, REMOTE_TRY_LISTEN, f->listener.qual, 0).ret,
		 DAT_CONN_QUAL_IN_USE);
	dt_fails(remote_ask(&r->peer, REMOTE_TRY_LISTEN, reserved, 0).ret, DAT_CONN_QUAL_IN_USE);
	/* the refused calls changed none of them */
	dt_ok(dat_rsp_free(rsp));
	conn_link(f, &f->a, &f->b);
	conn_transfer(f, &f->a, &f->b);
}

/* PSP-CREATE-15 PSP-CREATE-28 */
static void psp_create__of_a_killed_process__free_at_once(void **state)
{
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL theirs;

	theirs = remote_do(&r->peer, REMOTE_LISTEN, 0, 0);
	dt_peer_kill(&r->peer);
	dt_ok(dat_psp_create(f->ia.ia, theirs, f->listener.evd, DAT_PSP_CONSUMER_FLAG, &psp));
	dt_fails_with(dat_psp_create(f->ia.ia, 0, f->listener.evd, DAT_PSP_CONSUMER_FLAG, &psp),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

/* PSP-CRANY-02 PSP-CRANY-03 PSP-CRANY-04 COMPAT-06 */
static void psp_create_any__qualifiers__small_and_unique(void **state)
{
	struct remote_fixture *r = *state;
	struct conn_fixture *f = r->f;
	DAT_CONN_QUAL quals[200];

	for (size_t i = 0; i < COUNT_OF(quals); i++) {
		DAT_PSP_HANDLE psp;

		quals[i] = 0;
		dt_ok(dat_psp_create_any(f->ia.ia, &quals[i], f->listener.evd,
					 DAT_PSP_CONSUMER_FLAG, &psp));
		assert_true(quals[i] > 1023 && quals[i] <= 65535);
		for (size_t j = 0; j < i; j++)
			assert_true(quals[i] != quals[j]);
	}
	/* the other process can connect to each */
	for (size_t i = 0; i < COUNT_OF(quals); i += 50) {
		DAT_EVENT event;

		remote_connect(&r->peer, quals[i]);
		event = conn_request_event(f->listener.evd);
		assert_true(event.event_data.cr_arrival_event_data.conn_qual == quals[i]);
		dt_ok(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle));
		remote_expect(&r->peer, DAT_CONNECTION_EVENT_PEER_REJECTED);
		remote_do(&r->peer, REMOTE_RESET, 0, 0);
	}
}

static bool is_among(DAT_CONN_QUAL qual, const DAT_CONN_QUAL *quals, size_t count)
{
	while (count--)
		if (quals[count] == qual)
			return true;
	return false;
}

/* Listens on a port that was free a moment ago, as a consumer that chose it itself. */
static DAT_CONN_QUAL take_port(struct conn_fixture *f)
{
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_RETURN ret;

	do {
		dt_ok(dat_psp_create_any(f->ia.ia, &qual, f->listener.evd, DAT_PSP_CONSUMER_FLAG,
					 &psp));
		dt_ok(dat_psp_free(psp));
		ret = dat_psp_create(f->ia.ia, qual, f->listener.evd, DAT_PSP_CONSUMER_FLAG, &psp);
	} while (DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE); /* another process took it */
	dt_ok(ret);
	return qual;
}

/*
 * PSP-CRANY-02: a number that a consumer has chosen is not handed out. Enough numbers are in use,
 * and there are enough calls, that a provider which picks at random would return one of them.
 */
static void psp_create_any__numbers_in_use__another_number(void **state)
{
	struct conn_fixture *f = *state;
	DAT_CONN_QUAL taken[300];
	DAT_PSP_HANDLE psp;

	for (size_t i = 0; i < COUNT_OF(taken); i++) {
		taken[i] = take_port(f);
	}
	for (unsigned int i = 0; i < 2000; i++) {
		DAT_CONN_QUAL qual;

		dt_ok(dat_psp_create_any(f->ia.ia, &qual, f->listener.evd, DAT_PSP_CONSUMER_FLAG,
					 &psp));
		assert_false(is_among(qual, taken, COUNT_OF(taken)));
		dt_ok(dat_psp_free(psp));
	}
}

/* --- threads --- */

#define THREADS 4
#define PER_THREAD 25

struct creator {
	pthread_t thread;
	struct conn_fixture *f;
	DAT_CONN_QUAL quals[PER_THREAD];
};

static void *create_many(void *arg)
{
	struct creator *creator = arg;

	for (size_t i = 0; i < PER_THREAD; i++) {
		DAT_PSP_HANDLE psp;
		DAT_CONN_QUAL qual;

		dt_ok(dat_psp_create_any(creator->f->ia.ia, &creator->quals[i],
					 creator->f->listener.evd, DAT_PSP_CONSUMER_FLAG, &psp));
		dt_ok(create_any(creator->f, creator->f->listener.evd, DAT_PSP_CONSUMER_FLAG, &qual,
				 &psp));
		dt_ok(dat_psp_free(psp));
	}
	return NULL;
}

/* PSP-CREATE-26 PSP-CRANY-17 */
static void psp_create__from_many_threads__all_different(void **state)
{
	static struct creator workers[THREADS];
	struct conn_fixture *f = *state;
	bool seen[65536] = {false};

	for (size_t i = 0; i < THREADS; i++) {
		workers[i].f = f;
		assert_int_equal(pthread_create(&workers[i].thread, NULL, create_many, &workers[i]),
				 0);
	}
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
	for (size_t i = 0; i < THREADS * PER_THREAD; i++) {
		const DAT_CONN_QUAL qual = workers[i / PER_THREAD].quals[i % PER_THREAD];

		assert_true(qual < 65536);
		assert_false(seen[qual]);
		seen[qual] = true;
	}
}

struct contender {
	pthread_t thread;
	struct conn_fixture *f;
	DAT_CONN_QUAL qual;
	unsigned int won;
};

static void *contend(void *arg)
{
	struct contender *contender = arg;
	DAT_PSP_HANDLE psp;
	const DAT_RETURN ret =
		dat_psp_create(contender->f->ia.ia, contender->qual, contender->f->listener.evd,
			       DAT_PSP_CONSUMER_FLAG, &psp);

	if (ret == DAT_SUCCESS)
		contender->won = 1;
	else
		dt_fails(ret, DAT_CONN_QUAL_IN_USE);
	return NULL;
}

/* PSP-CREATE-26 PSP-CREATE-16 */
static void psp_create__same_qualifier_from_threads__one_succeeds(void **state)
{
	struct conn_fixture *f = *state;

	for (unsigned int round = 0; round < 10; round++) {
		const DAT_CONN_QUAL qual = dt_unused_qual();
		struct contender contenders[THREADS];
		unsigned int won = 0;

		for (size_t i = 0; i < THREADS; i++) {
			contenders[i] = (struct contender){.f = f, .qual = qual};
			assert_int_equal(pthread_create(&contenders[i].thread, NULL, contend,
							&contenders[i]),
					 0);
		}
		for (size_t i = 0; i < THREADS; i++) {
			assert_int_equal(pthread_join(contenders[i].thread, NULL), 0);
			won += contenders[i].won;
		}
		assert_int_equal(won, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(psp_create__then_connect__request_on_its_evd),
		conn_test(psp__many_requests__answered_in_any_order),
		conn_test(psp__evd_full__further_requests_refused),
		conn_test(psp__evd_shared_with_connection_events__both_arrive),
		conn_test(psp__exists__evd_in_use),
		remote_test(psp_create__qualifier_in_use__refused),
		remote_test(psp_create__of_a_killed_process__free_at_once),
		remote_test(psp_create_any__qualifiers__small_and_unique),
		conn_test(psp_create_any__numbers_in_use__another_number),
		conn_test(psp_create__from_many_threads__all_different),
		conn_test(psp_create__same_qualifier_from_threads__one_succeeds),
	};

	return cmocka_run_group_tests_name("psp_create", tests, NULL, NULL);
}
