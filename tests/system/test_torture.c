// SPDX-License-Identifier: BSD-2-Clause
/*
 * Eight threads create, connect, transfer, query, disconnect and free objects of all kinds at
 * random, also those of other threads. Calls succeed, fail with the expected code, or report an
 * invalid handle, and no byte is wrong. Runs for TORTURE_SECONDS (default 4); prints the seed.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "dt.h"

#define THREADS 8
#define POOL 64	     /* handles that all threads use */
#define MESSAGE 6000 /* bytes: more than one ring entry, so that several paths are taken */
#define ROUNDS 4     /* transfers per connection */

static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE pz;
static DAT_IA_ATTR attr;
static _Atomic(DAT_HANDLE) pool[POOL];
static atomic_bool is_over;
static atomic_ulong sessions, frees, foreign_calls;
static unsigned long seed;

struct thread {
	pthread_t id;
	unsigned long state;
	unsigned char *memory; /* MESSAGE * 2 */
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_CONTEXT rkey;
};

static unsigned long chance(struct thread *thread, unsigned long n)
{
	thread->state = thread->state * 6364136223846793005u + 1442695040888963407u;
	return (thread->state >> 33) % n;
}

#define MUST(call) must((call), #call, __LINE__)
static void must(DAT_RETURN ret, const char *call, int line)
{
	if (ret == DAT_SUCCESS)
		return;
	fprintf(stderr, "torture (seed %lu) line %d: %s: %s\n", seed, line, call, dt_strerror(ret));
	abort();
}

/* A call on an object that another thread may be freeing. */
#define MAY(call) may((call), #call, __LINE__)
static void may(DAT_RETURN ret, const char *call, int line)
{
	switch (DAT_GET_TYPE(ret)) {
	case DAT_SUCCESS:
	case DAT_INVALID_HANDLE:
	case DAT_INVALID_STATE:
	case DAT_INVALID_PARAMETER: /* a handle of another kind of EVD, a full window */
	case DAT_QUEUE_EMPTY:
	case DAT_QUEUE_FULL:
	case DAT_TIMEOUT_EXPIRED:
	case DAT_ABORT:
	case DAT_INSUFFICIENT_RESOURCES:
	case DAT_PROTECTION_VIOLATION:
		return;
	default:
		fprintf(stderr, "torture (seed %lu) line %d: %s: %s\n", seed, line, call,
			dt_strerror(ret));
		abort();
	}
}

/* --- other threads' objects --- */

static void free_handle(DAT_HANDLE handle)
{
	DAT_HANDLE_TYPE type;

	if (dat_get_handle_type(handle, &type) != DAT_SUCCESS)
		return;
	atomic_fetch_add(&frees, 1);
	switch (type) {
	case DAT_HANDLE_TYPE_EVD:
		MAY(dat_evd_free(handle));
		break;
	case DAT_HANDLE_TYPE_PZ:
		MAY(dat_pz_free(handle));
		break;
	case DAT_HANDLE_TYPE_LMR:
		MAY(dat_lmr_free(handle));
		break;
	case DAT_HANDLE_TYPE_RMR:
		MAY(dat_rmr_free(handle));
		break;
	case DAT_HANDLE_TYPE_CNO:
		MAY(dat_cno_free(handle));
		break;
	case DAT_HANDLE_TYPE_SRQ:
		MAY(dat_srq_free(handle));
		break;
	case DAT_HANDLE_TYPE_EP:
		MAY(dat_ep_free(handle));
		break;
	case DAT_HANDLE_TYPE_PSP:
		MAY(dat_psp_free(handle));
		break;
	default:
		break;
	}
}

/* Puts a new object into the pool and frees the old one. */
static void offer(struct thread *thread, DAT_HANDLE handle)
{
	DAT_HANDLE old = atomic_exchange(&pool[chance(thread, POOL)], handle);

	if (old)
		free_handle(old);
}

/* Any call that fits any handle, live, stale, or of the wrong type. */
static void call_any(struct thread *thread)
{
	DAT_HANDLE handle = atomic_load(&pool[chance(thread, POOL)]);
	DAT_EVENT event = {.event_number = DAT_SOFTWARE_EVENT};
	DAT_EP_STATE state;
	DAT_EVD_HANDLE evd;
	DAT_EVD_PARAM evd_param;
	DAT_LMR_PARAM lmr_param;
	DAT_SRQ_PARAM srq_param;
	DAT_EP_PARAM ep_param;
	DAT_CONTEXT context;
	DAT_COUNT more;

	atomic_fetch_add(&foreign_calls, 1);
	switch (chance(thread, 12)) {
	case 0:
		MAY(dat_ep_get_status(handle, &state, NULL, NULL));
		break;
	case 1:
		MAY(dat_ep_query(handle, DAT_EP_FIELD_ALL, &ep_param));
		break;
	case 2:
		MAY(dat_evd_post_se(handle, &event));
		break;
	case 3:
		MAY(dat_evd_dequeue(handle, &event));
		break;
	case 4:
		MAY(dat_evd_wait(handle, 50, 1, &event, &more));
		break;
	case 5:
		MAY(dat_cno_wait(handle, 50, &evd));
		break;
	case 6:
		MAY(dat_evd_query(handle, DAT_EVD_FIELD_ALL, &evd_param));
		break;
	case 7:
		MAY(dat_lmr_query(handle, DAT_LMR_FIELD_ALL, &lmr_param));
		break;
	case 8:
		MAY(dat_srq_query(handle, DAT_SRQ_FIELD_ALL, &srq_param));
		break;
	case 9:
		MAY(dat_get_consumer_context(handle, &context));
		break;
	case 10:
		MAY(dat_evd_resize(handle, (DAT_COUNT)(1 + chance(thread, 60))));
		break;
	default:
		MAY(dat_evd_modify_cno(handle, DAT_HANDLE_NULL));
		break;
	}
}

static void make_cno(struct thread *thread)
{
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd;

	MUST(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	MUST(dat_evd_create(ia, 16, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
	offer(thread, cno);
	offer(thread, evd);
}

static void make_srq(struct thread *thread)
{
	DAT_SRQ_ATTR srq_attr = {8, 2, DAT_SRQ_LW_DEFAULT};
	DAT_LMR_TRIPLET segment = {.lmr_context = thread->lkey,
				   .virtual_address = (DAT_VADDR)(uintptr_t)thread->memory,
				   .segment_length = 64};
	DAT_DTO_COOKIE cookie = {.as_64 = 1};
	DAT_SRQ_HANDLE srq;

	MUST(dat_srq_create(ia, pz, &srq_attr, &srq));
	MUST(dat_srq_post_recv(srq, 1, &segment, cookie));
	offer(thread, srq);
}

static void make_small(struct thread *thread)
{
	DAT_REGION_DESCRIPTION region = {.for_va = thread->memory};
	DAT_HANDLE handle;

	switch (chance(thread, 7)) {
	case 0:
		MUST(dat_pz_create(ia, &handle));
		break;
	case 1:
		MUST(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, MESSAGE, pz,
				    DAT_MEM_PRIV_ALL_FLAG, &handle, NULL, NULL, NULL, NULL));
		break;
	case 2:
		MUST(dat_rmr_create(pz, &handle));
		break;
	case 3:
		MUST(dat_evd_create(ia, 16, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &handle));
		break;
	case 4:
		make_cno(thread);
		return;
	case 5:
		make_srq(thread);
		return;
	default:
		MUST(dat_ep_create(ia, pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, NULL,
				   &handle));
		break;
	}
	offer(thread, handle);
}

/* --- a thread's own connection --- */

struct session {
	DAT_EVD_HANDLE evd; /* everything of both endpoints */
	DAT_EP_HANDLE a, b;
	DAT_PSP_HANDLE psp;
};

static DAT_EVENT next_event(struct session *session)
{
	uint64_t end = dt_now_us() + DT_WAIT_US;
	DAT_EVENT event;
	DAT_COUNT more;
	DAT_RETURN ret;

	do {
		ret = dat_evd_wait(session->evd, 1000000, 1, &event, &more);
		if (ret == DAT_SUCCESS)
			return event;
	} while (DAT_GET_TYPE(ret) == DAT_TIMEOUT_EXPIRED && dt_now_us() < end);
	MUST(ret);
	abort();
}

static void expect_event(struct session *session, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event = next_event(session);

	if (event.event_number == number)
		return;
	fprintf(stderr, "torture (seed %lu): event 0x%x instead of 0x%x\n", seed,
		(unsigned int)event.event_number, (unsigned int)number);
	abort();
}

static void session_open(struct session *session)
{
	DAT_CONN_QUAL qual;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;

	MUST(dat_evd_create(ia, 256, DAT_HANDLE_NULL, DAT_EVD_DEFAULT_FLAG, &session->evd));
	MUST(dat_ep_create(ia, pz, session->evd, session->evd, session->evd, NULL, &session->a));
	MUST(dat_ep_create(ia, pz, session->evd, session->evd, session->evd, NULL, &session->b));
	MUST(dat_psp_create_any(ia, &qual, session->evd, DAT_PSP_CONSUMER_FLAG, &session->psp));
	MUST(dat_ep_connect(session->a, attr.ia_address_ptr, qual, DAT_TIMEOUT_INFINITE, 0, NULL,
			    DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	event = next_event(session);
	if (event.event_number != DAT_CONNECTION_REQUEST_EVENT)
		abort();
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	MUST(dat_cr_accept(cr, session->b, 0, NULL));
	expect_event(session, DAT_CONNECTION_EVENT_ESTABLISHED);
	expect_event(session, DAT_CONNECTION_EVENT_ESTABLISHED);
	MUST(dat_psp_free(session->psp));
}

static void session_check(struct thread *thread, const unsigned char *p, size_t len, uint32_t value)
{
	for (size_t i = 0; i < len; i++) {
		if (p[i] == (unsigned char)(value + i * 7))
			continue;
		fprintf(stderr, "torture (seed %lu): wrong byte %zu of %zu in thread %p\n", seed, i,
			len, (void *)thread);
		abort();
	}
}

/* One transfer of a random kind and size from the first half of the memory into the second. */
static void session_transfer(struct thread *thread, struct session *session)
{
	size_t len = 1 + chance(thread, MESSAGE);
	uint32_t value = (uint32_t)chance(thread, 256);
	DAT_LMR_TRIPLET from = {.lmr_context = thread->lkey,
				.virtual_address = (DAT_VADDR)(uintptr_t)thread->memory,
				.segment_length = len};
	DAT_LMR_TRIPLET to = {.lmr_context = thread->lkey,
			      .virtual_address = (DAT_VADDR)(uintptr_t)(thread->memory + MESSAGE),
			      .segment_length = len};
	DAT_RMR_TRIPLET remote = {.rmr_context = thread->rkey, .segment_length = len};
	DAT_DTO_COOKIE cookie = {.as_64 = value};

	for (size_t i = 0; i < len; i++)
		thread->memory[i] = (unsigned char)(value + i * 7);
	memset(thread->memory + MESSAGE, 0, len);
	switch (chance(thread, 3)) {
	case 0:
		MUST(dat_ep_post_recv(session->b, 1, &to, cookie, DAT_COMPLETION_DEFAULT_FLAG));
		MUST(dat_ep_post_send(session->a, 1, &from, cookie, DAT_COMPLETION_DEFAULT_FLAG));
		expect_event(session, DAT_DTO_COMPLETION_EVENT);
		break;
	case 1:
		remote.target_address = to.virtual_address;
		MUST(dat_ep_post_rdma_write(session->a, 1, &from, cookie, &remote,
					    DAT_COMPLETION_DEFAULT_FLAG));
		break;
	default:
		remote.target_address = from.virtual_address;
		MUST(dat_ep_post_rdma_read(session->b, 1, &to, cookie, &remote,
					   DAT_COMPLETION_DEFAULT_FLAG));
		break;
	}
	expect_event(session, DAT_DTO_COMPLETION_EVENT);
	session_check(thread, thread->memory + MESSAGE, len, value);
}

/* Ends it in one of several ways. The next user of its place frees what remains. */
static void session_close(struct thread *thread, struct session *session)
{
	switch (chance(thread, 4)) {
	case 0:
		MUST(dat_ep_disconnect(session->a, DAT_CLOSE_GRACEFUL_FLAG));
		expect_event(session, DAT_CONNECTION_EVENT_DISCONNECTED);
		expect_event(session, DAT_CONNECTION_EVENT_DISCONNECTED);
		break;
	case 1:
		MUST(dat_ep_disconnect(session->b, DAT_CLOSE_ABRUPT_FLAG));
		expect_event(session, DAT_CONNECTION_EVENT_DISCONNECTED);
		expect_event(session, DAT_CONNECTION_EVENT_DISCONNECTED);
		MUST(dat_ep_reset(session->a));
		break;
	case 2: /* the endpoints go to the pool while they are connected */
		offer(thread, session->a);
		offer(thread, session->b);
		offer(thread, session->evd);
		return;
	default:
		break;
	}
	MUST(dat_ep_free(session->a));
	MUST(dat_ep_free(session->b));
	MUST(dat_evd_free(session->evd));
}

static void session_run(struct thread *thread)
{
	struct session session;

	session_open(&session);
	for (int i = 0; i < ROUNDS; i++)
		session_transfer(thread, &session);
	session_close(thread, &session);
	atomic_fetch_add(&sessions, 1);
}

/* --- the threads --- */

static void *thread_run(void *arg)
{
	struct thread *thread = arg;

	while (!atomic_load(&is_over)) {
		switch (chance(thread, 4)) {
		case 0:
			session_run(thread);
			break;
		case 1:
			make_small(thread);
			break;
		default:
			call_any(thread);
			break;
		}
	}
	return NULL;
}

static void thread_start(struct thread *thread, unsigned long number)
{
	DAT_REGION_DESCRIPTION region;

	thread->state = seed + number * 7919;
	thread->memory = dt_mem_alloc(2 * MESSAGE);
	region.for_va = thread->memory;
	dt_ok(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, 2 * MESSAGE, pz,
			     DAT_MEM_PRIV_ALL_FLAG, &thread->lmr, &thread->lkey, &thread->rkey,
			     NULL, NULL));
	assert_int_equal(pthread_create(&thread->id, NULL, thread_run, thread), 0);
}

static unsigned long from_environment(const char *name, unsigned long fallback)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 0) : fallback;
}

/* GEN-26 EP-FREE-28 EP-GEN-10 */
static void all_calls__eight_threads_at_random__no_harm(void **state)
{
	unsigned long seconds = from_environment("TORTURE_SECONDS", 4);
	struct thread threads[THREADS];
	struct dt_ia adapter;

	(void)state;
	seed = from_environment("TORTURE_SEED", (unsigned long)getpid());
	print_message("seed %lu, %lu s\n", seed, seconds);
	dt_ia_open(&adapter);
	ia = adapter.ia;
	pz = adapter.pz;
	attr = adapter.attr;
	for (unsigned long i = 0; i < THREADS; i++)
		thread_start(&threads[i], i);
	for (uint64_t end = dt_now_us() + seconds * 1000000u; dt_now_us() < end;)
		usleep(10000); /* the length of the run, not an order of events */
	atomic_store(&is_over, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i].id, NULL);
	dt_ia_abort(&adapter);
	for (int i = 0; i < THREADS; i++)
		dt_mem_free(threads[i].memory, 2 * MESSAGE);
	print_message("%lu connections, %lu foreign frees, %lu foreign calls\n",
		      atomic_load(&sessions), atomic_load(&frees), atomic_load(&foreign_calls));
	assert_true(atomic_load(&sessions) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_calls__eight_threads_at_random__no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
