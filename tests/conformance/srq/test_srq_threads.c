// SPDX-License-Identifier: BSD-2-Clause
/*
 * SRQs under traffic and from several threads. Messages are numbered per connection; each buffer is
 * in the hands of the test, or posted, so that one that is lost or completes twice is noticed.
 */
#include <sched.h>

#include "srq_util.h"

#define PAIRS 4
#define BUFFERS 48
#define POSTERS 3
#define PART (SRQ_SLOTS / PAIRS) /* slots of x of one sender, more than it has outstanding */

struct traffic {
	struct bench *bench;
	uint64_t messages; /* per pair */
	pthread_mutex_t lock;
	unsigned free_count; /* of buffers that are in our hands, guarded by lock */
	unsigned free_slot[BUFFERS];
	bool is_posted[BUFFERS];
	uint64_t received[PAIRS];
	_Atomic bool is_over;
	void (*meddle)(struct traffic *traffic, unsigned round); /* meanwhile */
};

static int take_slot(struct traffic *t)
{
	int slot = -1;

	pthread_mutex_lock(&t->lock);
	if (t->free_count) {
		slot = (int)t->free_slot[--t->free_count];
		t->is_posted[slot] = true;
	}
	pthread_mutex_unlock(&t->lock);
	return slot;
}

static void put_slot(struct traffic *t, uint64_t slot)
{
	pthread_mutex_lock(&t->lock);
	assert_true(slot < BUFFERS && t->is_posted[slot]);
	t->is_posted[slot] = false;
	t->free_slot[t->free_count++] = (unsigned)slot;
	pthread_mutex_unlock(&t->lock);
}

/* SRQ-RECV-46: posts all free buffers. */
static void *post_run(void *arg)
{
	struct traffic *t = arg;

	while (!t->is_over) {
		const int slot = take_slot(t);
		DAT_RETURN ret = DAT_SUCCESS;

		if (slot >= 0)
			ret = srq_post(t->bench->srq, bench_slot(t->bench, (uint64_t)slot),
				       (uint64_t)slot);
		if (ret != DAT_SUCCESS) {
			put_slot(t, (uint64_t)slot);
			if (DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES)
				return (void *)(uintptr_t) "a post was refused";
		}
		if (slot < 0 || ret != DAT_SUCCESS)
			sched_yield();
	}
	return NULL;
}

static void *send_run(void *arg)
{
	struct traffic *t = arg;
	uint64_t sent[PAIRS] = {0};
	unsigned done = 0;

	while (done < PAIRS) {
		bool is_full = true;

		for (unsigned i = 0; i < PAIRS; i++) {
			const size_t at = (i * PART + sent[i] % PART) * SRQ_SLOT;
			DAT_LMR_TRIPLET seg = dt_seg(&t->bench->x, at, sizeof(uint64_t));

			if (sent[i] == t->messages)
				continue;
			memcpy(t->bench->x.p + at, &sent[i], sizeof(sent[i]));
			if (dat_ep_post_send(t->bench->from[i].ep, 1, &seg, dt_cookie(1),
					     DAT_COMPLETION_SUPPRESS_FLAG) != DAT_SUCCESS)
				continue;
			is_full = false;
			if (++sent[i] == t->messages)
				done++;
		}
		if (is_full)
			sched_yield();
	}
	return NULL;
}

static void *meddle_run(void *arg)
{
	struct traffic *t = arg;

	for (unsigned round = 0; !t->is_over; round++) {
		t->meddle(t, round);
		sched_yield();
	}
	return NULL;
}

static bool receive_one(struct traffic *t, unsigned pair)
{
	struct bench *bench = t->bench;
	DAT_EVENT event;
	uint64_t cookie;

	if (dat_evd_dequeue(bench->to[pair].recv, &event) != DAT_SUCCESS)
		return false;
	cookie = bench_check_event(&event, bench->to[pair].ep);
	assert_true(bench_read(bench, cookie) == t->received[pair]);
	t->received[pair]++;
	put_slot(t, cookie);
	return true;
}

static void traffic_run(struct bench *bench,
			void (*meddle)(struct traffic *traffic, unsigned round))
{
	static struct traffic t;
	pthread_t id[POSTERS + 2];
	unsigned threads = 0, posted = 0;
	uint64_t left;

	memset(&t, 0, sizeof(t));
	t.bench = bench;
	t.meddle = meddle;
	/* on a device, a message that finds no buffer is sent again after a pause */
	t.messages = DT_SLOW || dt_is_verbs() ? 400 : 3000;
	pthread_mutex_init(&t.lock, NULL);
	for (unsigned i = 0; i < BUFFERS; i++)
		t.free_slot[t.free_count++] = i;
	bench->has_async = true;
	bench_add(bench, PAIRS);
	for (; threads < POSTERS; threads++)
		assert_int_equal(pthread_create(&id[threads], NULL, post_run, &t), 0);
	assert_int_equal(pthread_create(&id[threads++], NULL, send_run, &t), 0);
	if (meddle)
		assert_int_equal(pthread_create(&id[threads++], NULL, meddle_run, &t), 0);
	left = t.messages * PAIRS;
	for (const uint64_t end = dt_now_us() + 3 * DT_WAIT_US; left && dt_now_us() < end;) {
		bool has_any = false;

		for (unsigned i = 0; i < PAIRS; i++)
			if (receive_one(&t, i)) {
				has_any = true;
				left--;
			}
		if (!has_any)
			sched_yield();
	}
	t.is_over = true;
	for (unsigned i = 0; i < threads; i++) {
		void *failed = NULL;

		assert_int_equal(pthread_join(id[i], &failed), 0);
		if (failed)
			print_error("%s\n", (const char *)failed);
		assert_null(failed);
	}
	assert_true(left == 0);
	for (unsigned i = 0; i < BUFFERS; i++)
		posted += t.is_posted[i];
	srq_counts(bench->srq, (DAT_COUNT)posted, (DAT_COUNT)posted);
	for (unsigned i = 0; i < PAIRS; i++)
		dt_no_event(bench->to[i].recv);
	pthread_mutex_destroy(&t.lock);
}

/* SRQ-RECV-46 SRQ-RECV-03 SRQ-RECV-11 SRQ-RECV-26 SRQ-USE-11 EP-GEN-10 GEN-26 */
static void srq_post_recv__several_threads_under_traffic__none_lost(void **state)
{
	traffic_run(*state, NULL);
}

static void resize(struct traffic *t, unsigned round)
{
	static const DAT_COUNT sizes[] = {64, 17, 200, 5, 33, 48, 1, 16};
	DAT_RETURN ret = dat_srq_resize(t->bench->srq, sizes[round % COUNT_OF(sizes)]);

	if (ret != DAT_SUCCESS)
		assert_int_equal(DAT_GET_TYPE(ret), DAT_INVALID_STATE);
}

/* SRQ-RESIZE-02 SRQ-RESIZE-12 SRQ-RESIZE-13 */
static void srq_resize__under_traffic__none_lost(void **state)
{
	traffic_run(*state, resize);
}

static void query_all(struct traffic *t, unsigned round)
{
	const struct dt_ep *to = &t->bench->to[round % PAIRS];
	const DAT_SRQ_PARAM param = srq_query(t->bench->srq);
	const bool shows_held = srq_shows_held(&t->bench->ia);
	DAT_COUNT held, span;
	DAT_RETURN ret;
	DAT_BOOLEAN idle;

	assert_true(param.available_dto_count >= 0);
	assert_true(param.available_dto_count <= param.outstanding_dto_count);
	assert_true(param.outstanding_dto_count <= param.max_recv_dtos);
	if (shows_held) {
		dt_ok(dat_ep_recv_query(to->ep, &held, &span));
		assert_true(held >= 0 && span >= held);
	} else {
		srq_expect_held(&t->bench->ia, to->ep, 0);
	}
	dt_ok(dat_ep_get_status(to->ep, NULL, &idle, NULL));
	dt_ok(dat_srq_set_lw(t->bench->srq, (DAT_COUNT)(round % 16)));
	ret = dat_ep_set_watermark(to->ep, (DAT_COUNT)(round % 3), 1);
	assert_int_equal(DAT_GET_TYPE(ret), shows_held ? DAT_SUCCESS : DAT_MODEL_NOT_SUPPORTED);
}

/* SRQ-QUERY-18 SRQ-LW-17 SRQ-LW-18 EP-WMARK-19 EP-WMARK-22 EP-RECVQ-08 EP-RECVQ-09 EP-RECVQ-14
 * EP-RECVQ-19 */
static void srq_query_and_watermarks__under_traffic__consistent(void **state)
{
	traffic_run(*state, query_all);
}

/* --- connections come and go --- */

struct churn {
	struct bench *bench;
	_Atomic bool is_over;
	_Atomic unsigned posted;
};

static void *churn_post(void *arg)
{
	struct churn *churn = arg;

	while (!churn->is_over) {
		DAT_RETURN ret = srq_post_empty(churn->bench->srq, 5);

		if (ret == DAT_SUCCESS)
			churn->posted++;
		else if (DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES)
			return (void *)(uintptr_t) "a post was refused";
		else
			sched_yield();
	}
	return NULL;
}

static unsigned count_received(DAT_EVD_HANDLE evd)
{
	unsigned count = 0;
	DAT_EVENT event;

	for (; dat_evd_dequeue(evd, &event) == DAT_SUCCESS; count++)
		assert_true(event.event_data.dto_completion_event_data.user_cookie.as_64 == 5);
	return count;
}

/* Eight of each pair but the victim's, whose are taken too: all of them occupy entries. */
static unsigned receive_rest(struct bench *bench, unsigned victim)
{
	const uint64_t end = dt_now_us() + DT_WAIT_US;
	unsigned got[PAIRS] = {0}, sum = 0, others = 0;

	while (others < 8 * (PAIRS - 1)) {
		assert_true(dt_now_us() < end);
		for (unsigned i = 0; i < PAIRS; i++)
			got[i] += count_received(bench->to[i].recv);
		for (unsigned i = others = sum = 0; i < PAIRS; i++) {
			assert_true(got[i] <= 8);
			sum += got[i];
			others += i == victim ? 0 : got[i];
		}
	}
	return sum;
}

/* SRQ-USE-05 SRQ-USE-07 SRQ-USE-09 SRQ-USE-10 SRQ-USE-12: no buffer is lost, no endpoint waits for
 * ever */
static void srq__connections_end_while_served__every_buffer_accounted_for(void **state)
{
	struct bench *bench = *state;
	struct churn churn = {.bench = bench};
	unsigned received = 0;
	pthread_t id[2];
	void *failed;

	bench_add(bench, PAIRS);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&id[i], NULL, churn_post, &churn), 0);
	for (unsigned round = 0; round < (DT_SLOW ? 30u : 200u); round++) {
		const unsigned victim = round % PAIRS;

		for (unsigned n = 0; n < 8; n++)
			for (unsigned i = 0; i < PAIRS; i++)
				dt_ok(dat_ep_post_send(bench->from[i].ep, 0, NULL, dt_cookie(1),
						       DAT_COMPLETION_SUPPRESS_FLAG));
		dt_ok(dat_ep_disconnect(round & 4 ? bench->from[victim].ep : bench->to[victim].ep,
					DAT_CLOSE_ABRUPT_FLAG));
		received += receive_rest(bench, victim);
		expect_ended(&bench->from[victim], DAT_CONNECTION_EVENT_DISCONNECTED);
		expect_ended(&bench->to[victim], DAT_CONNECTION_EVENT_DISCONNECTED);
		received += count_received(bench->to[victim].recv);
		dt_drain(bench->from[victim].request);
		dt_ok(dat_ep_reset(bench->from[victim].ep));
		dt_ok(dat_ep_reset(bench->to[victim].ep));
		dt_ep_link(&bench->ia, &bench->from[victim], &bench->to[victim]);
	}
	churn.is_over = true;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(id[i], &failed), 0);
		assert_null(failed);
	}
	srq_counts(bench->srq, (DAT_COUNT)(churn.posted - received),
		   (DAT_COUNT)(churn.posted - received));
}

/* --- calls that race with the end of their object --- */

#define RACES (DT_SLOW ? 60 : 400)

struct race {
	struct bench *bench;
	pthread_barrier_t start;
	DAT_SRQ_HANDLE srq;
	DAT_EP_HANDLE ep;
	_Atomic unsigned freed;
};

/* EP-WMARK-19 */
static bool is_unsupported(const struct bench *bench, DAT_RETURN ret)
{
	return !srq_shows_held(&bench->ia) && DAT_GET_TYPE(ret) == DAT_MODEL_NOT_SUPPORTED;
}

static bool is_expected(DAT_RETURN ret)
{
	const DAT_RETURN type = DAT_GET_TYPE(ret);

	return ret == DAT_SUCCESS || type == DAT_INVALID_HANDLE || type == DAT_INVALID_STATE ||
	       type == DAT_INSUFFICIENT_RESOURCES;
}

/* Every call on the SRQ and its endpoint, dat_srq_free and dat_ep_free among them. */
static void *race_run(void *arg)
{
	struct race *race = arg;
	DAT_COUNT held, span;
	DAT_SRQ_PARAM param;
	DAT_RETURN ret;

	for (int round = 0; round < RACES; round++) {
		bool is_good = true;

		pthread_barrier_wait(&race->start);
		const DAT_SRQ_HANDLE srq = race->srq;
		const DAT_EP_HANDLE ep = race->ep;

		for (int i = 0; i < 3; i++) {
			is_good &= is_expected(srq_post_empty(srq, 1));
			is_good &= is_expected(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
			is_good &= is_expected(dat_srq_resize(srq, 8 + i));
			is_good &= is_expected(dat_srq_set_lw(srq, 0));
			ret = dat_ep_set_watermark(ep, 1, 1);
			is_good &= is_expected(ret) || is_unsupported(race->bench, ret);
			is_good &= is_expected(dat_ep_recv_query(ep, &held, &span));
			if (i)
				is_good &= is_expected(dat_ep_free(ep));
			if (dat_srq_free(srq) == DAT_SUCCESS)
				race->freed++;
		}
		if (!is_good)
			return (void *)(uintptr_t) "an unexpected result";
		pthread_barrier_wait(&race->start);
	}
	return NULL;
}

/* GEN-26 SRQ-FREE-09 SRQ-QUERY-18 SRQ-RESIZE-13 SRQ-LW-18 EP-WMARK-22 EP-RECVQ-19 SRQ-RECV-46
 * EP-FREE-28 */
static void srq_calls__race_with_free__before_it_or_refused(void **state)
{
	struct bench *bench = *state;
	struct race race = {.bench = bench};
	pthread_t id[CONF_THREADS];
	void *failed;

	bench->attr.max_request_dtos = 0;
	pthread_barrier_init(&race.start, NULL, CONF_THREADS + 1);
	for (int i = 0; i < CONF_THREADS; i++)
		assert_int_equal(pthread_create(&id[i], NULL, race_run, &race), 0);
	for (int round = 0; round < RACES; round++) {
		race.srq = srq_make(&bench->ia, 8, 1);
		dt_ok(dat_ep_create_with_srq(bench->ia.ia, bench->ia.pz, DAT_HANDLE_NULL,
					     DAT_HANDLE_NULL, DAT_HANDLE_NULL, race.srq,
					     &bench->attr, &race.ep));
		race.freed = 0;
		pthread_barrier_wait(&race.start);
		pthread_barrier_wait(&race.start);
		assert_int_equal(race.freed, 1);
		dt_fails_with(dat_ep_free(race.ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	}
	for (int i = 0; i < CONF_THREADS; i++) {
		assert_int_equal(pthread_join(id[i], &failed), 0);
		assert_null(failed);
	}
	pthread_barrier_destroy(&race.start);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		bench_test(srq_post_recv__several_threads_under_traffic__none_lost),
		bench_test(srq_resize__under_traffic__none_lost),
		bench_test(srq_query_and_watermarks__under_traffic__consistent),
		bench_test(srq__connections_end_while_served__every_buffer_accounted_for),
		bench_test(srq_calls__race_with_free__before_it_or_refused),
	};

	return cmocka_run_group_tests_name("srq_threads", tests, NULL, NULL);
}
