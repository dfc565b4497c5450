// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_ia_close: what a graceful close refuses, what an abrupt close ends, and that nothing is left
 * of either. Called with an argument this program is the process of test IA-CLOSE-28.
 */
#include "world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

static const char *self;

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

/* One object at a time, in the order of their making; each blocks alone or with those it needs. */
/* IA-CLOSE-04 IA-CLOSE-05 EP-GEN-12 COMPAT-17 */
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
	refuse_graceful(ia.ia); /* an event dispatcher alone */
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

/* IA-CLOSE-05 COMPAT-17 */
static void ia_close__graceful_refused__everything_works_on(void **state)
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

/* --- abrupt --- */

/* IA-CLOSE-07 IA-CLOSE-08 IA-CLOSE-23 */
static void ia_close__abrupt_with_everything__destroys_all(void **state)
{
	struct dt_pair pair;
	struct dt_buf buf;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	DAT_EVD_HANDLE evd;

	(void)state;
	dt_pair_open(&pair);
	dt_buf_create(&pair.ia, pair.ia.pz, &buf, 4096, DAT_MEM_PRIV_ALL_FLAG);
	evd = dt_evd_create(&pair.ia, 4, DAT_EVD_CR_FLAG);
	dt_ok(dat_psp_create_any(pair.ia.ia, &qual, evd, DAT_PSP_PROVIDER_FLAG, &psp));
	/* Queued events, Receives and Sends that wait. */
	dt_fill(buf.p, 4096, 7);
	dt_ok(conf_post_recv(&pair, dt_seg(&buf, 0, 64), 1));
	dt_ok(conf_post_write(&pair, dt_seg(&buf, 0, 64), dt_rseg(&buf, 0, 64), 2));
	for (int i = 0; i < 5; i++) {
		DAT_LMR_TRIPLET seg = dt_seg(&buf, 128, 64);

		dt_ok(dat_ep_post_send(pair.b.ep, 1, &seg, dt_cookie(3), 0));
	}
	const DAT_HANDLE handle[] = {pair.a.ep,	 pair.a.recv,	pair.a.request, pair.a.conn,
				     pair.b.ep,	 pair.b.recv,	pair.b.request, pair.b.conn,
				     pair.ia.pz, pair.ia.async, buf.lmr,	evd,
				     psp,	 pair.ia.ia};

	dt_ia_abort(&pair.ia);
	for (size_t i = 0; i < COUNT_OF(handle); i++)
		world_check_dead(handle[i]);
	dt_check_pattern(buf.p, 4096, 7);
	dt_mem_free(buf.p, buf.mapped);
}

/* IA-CLOSE-12 CONN-EVT-33 */
static void ia_close__abrupt_with_connections__peers_are_told(void **state)
{
	struct dt_ia passive, active;
	struct dt_listener listener;
	struct dt_ep a[3], b[3];

	(void)state;
	dt_ia_open(&passive);
	dt_ia_open(&active);
	dt_listen(&passive, &listener);
	for (size_t i = 0; i < COUNT_OF(a); i++) {
		dt_ep_create(&active, active.pz, NULL, &a[i]);
		dt_ep_create(&passive, passive.pz, NULL, &b[i]);
		dt_connect(&active, a[i].ep, listener.qual);
		dt_ok(dat_cr_accept(dt_request(&listener), b[i].ep, 0, NULL));
		dt_expect_conn(a[i].conn, a[i].ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	}
	dt_ia_abort(&passive);
	for (size_t i = 0; i < COUNT_OF(a); i++) {
		const DAT_EVENT event = dt_event(a[i].conn);

		assert_true(event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
			    event.event_number == DAT_CONNECTION_EVENT_BROKEN);
		assert_int_equal(dt_ep_state(a[i].ep), DAT_EP_STATE_DISCONNECTED);
		dt_ep_free(&a[i]);
	}
	dt_ia_close(&active);
}

struct waiter {
	DAT_EVD_HANDLE evd;
	DAT_RETURN ret;
	pthread_t thread;
};

static void *wait_for_ever(void *arg)
{
	struct waiter *waiter = arg;
	DAT_EVENT event;
	DAT_COUNT more;

	waiter->ret = dat_evd_wait(waiter->evd, DAT_TIMEOUT_INFINITE, 1, &event, &more);
	return NULL;
}

static bool is_waited_on(void *arg)
{
	DAT_EVENT event;

	/* A waiter owns the EVD: EVD-DEQUEUE-04. */
	return DAT_GET_TYPE(dat_evd_dequeue(arg, &event)) == DAT_INVALID_STATE;
}

static void start_waiter(struct waiter *waiter, DAT_EVD_HANDLE evd)
{
	waiter->evd = evd;
	assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for_ever, waiter), 0);
	dt_until(is_waited_on, evd);
}

/* IA-CLOSE-09 IA-CLOSE-25 EVD-WAIT-22 */
static void ia_close__abrupt_with_waiters__each_aborts(void **state)
{
	struct dt_ia ia;
	struct waiter waiter[4];

	(void)state;
	for (int round = 0; round < 10; round++) {
		dt_ia_open(&ia);
		start_waiter(&waiter[0], ia.async);
		for (size_t i = 1; i < COUNT_OF(waiter); i++)
			start_waiter(&waiter[i], dt_evd_create(&ia, 4, DAT_EVD_DEFAULT_FLAG));
		dt_ia_abort(&ia);
		for (size_t i = 0; i < COUNT_OF(waiter); i++) {
			assert_int_equal(pthread_join(waiter[i].thread, NULL), 0);
			dt_fails(waiter[i].ret, DAT_ABORT);
		}
	}
}

struct cno_waiter {
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd;
	DAT_RETURN ret;
	atomic_bool started;
	pthread_t thread;
};

static void *wait_on_cno(void *arg)
{
	struct cno_waiter *waiter = arg;

	atomic_store(&waiter->started, true);
	waiter->ret = dat_cno_wait(waiter->cno, DAT_TIMEOUT_INFINITE, &waiter->evd);
	return NULL;
}

static bool has_started(void *arg)
{
	return atomic_load(&((struct cno_waiter *)arg)->started);
}

/* IA-CLOSE-10 IA-CLOSE-25 */
static void ia_close__abrupt_with_a_cno_waiter__woken_without_evd(void **state)
{
	const struct timespec pause = {.tv_nsec = 20000000};

	(void)state;
	for (int round = 0; round < 10; round++) {
		struct cno_waiter waiter = {.evd = DAT_EVD_ASYNC_EXISTS};
		struct dt_ia ia;

		dt_ia_open(&ia);
		dt_ok(dat_cno_create(ia.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &waiter.cno));
		assert_int_equal(pthread_create(&waiter.thread, NULL, wait_on_cno, &waiter), 0);
		dt_until(has_started, &waiter);
		if (round)
			nanosleep(&pause, NULL); /* mostly inside the call; both are right */
		dt_ia_abort(&ia);
		assert_int_equal(pthread_join(waiter.thread, NULL), 0);
		if (DAT_GET_TYPE(waiter.ret) != DAT_INVALID_HANDLE)
			assert_null(waiter.evd);
		else
			assert_int_equal(round, 0); /* the close came first */
	}
}

struct agent {
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd;
	atomic_int calls, with_evd, odd;
};

/* An agent that does what agents do: takes events and arms itself again. */
static void on_notification(DAT_PVOID instance_data, DAT_EVD_HANDLE evd)
{
	struct agent *agent = instance_data;
	const DAT_OS_WAIT_PROXY_AGENT again = {instance_data, on_notification};
	DAT_EVENT event;

	atomic_fetch_add(&agent->calls, 1);
	if (evd != DAT_HANDLE_NULL)
		atomic_fetch_add(&agent->with_evd, 1);
	if (DAT_GET_TYPE(dat_evd_dequeue(agent->evd, &event)) != DAT_INVALID_HANDLE ||
	    DAT_GET_TYPE(dat_cno_modify_agent(agent->cno, again)) != DAT_INVALID_HANDLE)
		atomic_fetch_add(&agent->odd, 1);
}

/* IA-CLOSE-11 IA-CLOSE-27 */
static void ia_close__abrupt_with_an_agent__called_once_before_the_return(void **state)
{
	struct agent agent = {.calls = 0};
	const DAT_OS_WAIT_PROXY_AGENT proxy = {&agent, on_notification};
	struct dt_ia ia;

	(void)state;
	dt_ia_open(&ia);
	dt_ok(dat_cno_create(ia.ia, proxy, &agent.cno));
	dt_ok(dat_evd_create(ia.ia, 4, agent.cno, DAT_EVD_SOFTWARE_FLAG, &agent.evd));
	dt_ia_abort(&ia);
	assert_int_equal(atomic_load(&agent.calls), 1);
	assert_int_equal(atomic_load(&agent.with_evd), 0);
	assert_int_equal(atomic_load(&agent.odd), 0);
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
		nanosleep(&pause, NULL); /* time for a wake-up that must not come */
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
static void ia_close__abrupt_while_its_evd_is_borrowed__borrower_works_on(void **state)
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
	/* More flushed Receives than their EVD holds: an asynchronous event without a place. */
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
	atomic_int closed, odd;
};

static void *close_it(void *arg)
{
	struct one_ia *one = arg;
	const DAT_RETURN ret = dat_ia_close(one->ia, DAT_CLOSE_ABRUPT_FLAG);

	if (ret == DAT_SUCCESS)
		atomic_fetch_add(&one->closed, 1);
	else if (DAT_GET_TYPE(ret) != DAT_INVALID_HANDLE)
		atomic_fetch_add(&one->odd, 1);
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
		assert_int_equal(one.odd, 0);
	}
}

/* --- residue --- */

struct usage {
	int descriptors, threads, shared;
	long pages;
};

static int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int count = 0;

	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

static struct usage measure(void)
{
	struct usage usage = {.descriptors = count_entries("/proc/self/fd"),
			      .threads = count_entries("/proc/self/task"),
			      .shared = count_entries("/dev/shm")};
	FILE *file = fopen("/proc/self/statm", "re");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%ld", &usage.pages), 1);
	fclose(file);
	return usage;
}

/* The kernel lists a thread a little longer than its joiner waits. */
static bool has_threads(void *arg)
{
	return count_entries("/proc/self/task") <= *(int *)arg;
}

/* IA-CLOSE-20 GEN-16 IA-OPEN-43 */
static void ia_close__thousand_cycles__nothing_remains(void **state)
{
	const uint64_t end = dt_now_us() + 4000000; /* a slow machine makes fewer */
	DAT_IA_HANDLE first = DAT_HANDLE_NULL;
	struct usage before = {0}, after;
	struct dt_ia ia;
	struct dt_buf buf;

	(void)state;
	for (int i = 0; i < 1050 && (i < 200 || dt_now_us() < end); i++) {
		if (i == 50)
			before = measure();
		dt_ia_open(&ia);
		if (i == 50)
			first = ia.ia;
		else
			assert_ptr_not_equal(ia.ia, first);
		dt_buf_create(&ia, ia.pz, &buf, 4096, DAT_MEM_PRIV_ALL_FLAG);
		if (i % 2) {
			dt_buf_free(&buf);
			dt_ia_close(&ia);
		} else {
			dt_ia_abort(&ia);
			dt_mem_free(buf.p, buf.mapped);
		}
	}
	dt_until(has_threads, &before.threads);
	after = measure();
	assert_int_equal(after.descriptors, before.descriptors);
	assert_true(after.shared <= before.shared);
	if (!DT_SLOW) /* these keep freed memory for a while */
		assert_true(after.pages - before.pages < 4096);
}

/* --- a peer that is stopped --- */

static void connect_and_idle(struct dt_peer *peer, void *arg)
{
	struct dt_ia ia;
	struct dt_ep ep;
	DAT_CONN_QUAL qual;

	(void)arg;
	dt_ia_open(&ia);
	dt_ep_create(&ia, ia.pz, NULL, &ep);
	dt_peer_recv(peer, &qual, sizeof(qual));
	dt_connect(&ia, ep.ep, qual);
	dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_peer_sync(peer);
	dt_event(ep.conn);
	dt_ep_free(&ep);
	dt_ia_close(&ia);
}

/* IA-CLOSE-13 */
static void ia_close__abrupt_with_a_stopped_idle_peer__returns_at_once(void **state)
{
	struct dt_listener listener;
	struct dt_peer peer;
	struct dt_buf buf;
	struct dt_ia ia;
	struct dt_ep ep;

	(void)state;
	dt_peer_start(&peer, connect_and_idle, NULL);
	dt_ia_open(&ia);
	dt_ep_create(&ia, ia.pz, NULL, &ep);
	dt_buf_create(&ia, ia.pz, &buf, 1u << 20, CONF_LOCAL);
	dt_listen(&ia, &listener);
	dt_peer_send(&peer, &listener.qual, sizeof(listener.qual));
	dt_ok(dat_cr_accept(dt_request(&listener), ep.ep, 0, NULL));
	dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_peer_sync(&peer);
	dt_peer_stop(&peer);
	for (int i = 0; i < 4; i++) { /* never received */
		DAT_LMR_TRIPLET seg = dt_seg(&buf, 0, buf.len);

		dt_ok(dat_ep_post_send(ep.ep, 1, &seg, dt_cookie(1), 0));
	}
	const uint64_t before = dt_now_us();

	dt_ia_abort(&ia);
	assert_true(dt_now_us() - before < 4000000); /* the peer time-out is 5 s */
	dt_peer_continue(&peer);
	dt_peer_join(&peer);
	dt_mem_free(buf.p, buf.mapped);
}

/* --- the end of the process --- */

/* What the program does when called with an argument. */
static int end_with_everything_open(const char *how)
{
	struct dt_pair pair;
	struct dt_buf buf;
	struct waiter waiter[2];

	dt_pair_open(&pair);
	dt_buf_create(&pair.ia, pair.ia.pz, &buf, 1u << 20, DAT_MEM_PRIV_ALL_FLAG);
	start_waiter(&waiter[0], pair.ia.async);
	start_waiter(&waiter[1], pair.b.conn);
	for (int i = 0; i < 8; i++)
		dt_ok(conf_post_write(&pair, dt_seg(&buf, 0, buf.len / 2),
				      dt_rseg(&buf, buf.len / 2, buf.len / 2), 1));
	if (strcmp(how, "return") == 0)
		return 0;
	if (strcmp(how, "exec") == 0)
		execl("/bin/true", "true", (char *)NULL);
	if (strcmp(how, "exit") == 0)
		exit(0);
	return 3;
}

static void call_ourselves(struct dt_peer *peer, void *arg)
{
	(void)peer;
	setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* the instance is open at the end */
	unsetenv("OPENDAT_TEST_BYTES");		     /* and its copies are not counted */
	execl(self, self, (char *)arg, (char *)NULL);
	_exit(4);
}

/* IA-CLOSE-28 */
static void process__ends_with_an_instance_open__at_once(void **state)
{
	static char *const ways[] = {"return", "exit", "exec"};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(ways); i++) {
		struct dt_peer peer;

		dt_peer_start(&peer, call_ourselves, ways[i]);
		dt_peer_join(&peer);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(close_flags__of_the_header__values),
		cmocka_unit_test(ia_close__only_its_own_evd_left__success),
		cmocka_unit_test(ia_close__graceful_with_an_object_of_each_kind__invalid_state),
		cmocka_unit_test(ia_close__graceful_refused__everything_works_on),
		cmocka_unit_test(ia_close__graceful_with_an_unanswered_request__destroys_it),
		cmocka_unit_test(ia_close__abrupt_with_everything__destroys_all),
		cmocka_unit_test(ia_close__abrupt_with_connections__peers_are_told),
		cmocka_unit_test(ia_close__abrupt_with_waiters__each_aborts),
		cmocka_unit_test(ia_close__abrupt_with_a_cno_waiter__woken_without_evd),
		cmocka_unit_test(ia_close__abrupt_with_an_agent__called_once_before_the_return),
		cmocka_unit_test(ia_close__borrower_of_an_evd__evd_and_its_waiters_stay),
		cmocka_unit_test(ia_close__graceful_while_its_evd_is_borrowed__invalid_state),
		cmocka_unit_test(ia_close__abrupt_while_its_evd_is_borrowed__borrower_works_on),
		cmocka_unit_test(ia_close__no_instance__invalid_handle),
		cmocka_unit_test(ia_close__undefined_flags__invalid_parameter),
		cmocka_unit_test(ia_close__same_instance_in_parallel__closed_once),
		cmocka_unit_test(ia_close__thousand_cycles__nothing_remains),
		cmocka_unit_test(ia_close__abrupt_with_a_stopped_idle_peer__returns_at_once),
		cmocka_unit_test(process__ends_with_an_instance_open__at_once),
	};

	if (argc > 1)
		return end_with_everything_open(argv[1]);
	self = argv[0];
	return cmocka_run_group_tests_name("ia close", tests, NULL, NULL);
}
