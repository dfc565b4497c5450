// SPDX-License-Identifier: BSD-2-Clause
/*
 * What several conformance programs share beyond the harness: handles that must be refused,
 * threads, and single transfers between the two endpoints of a pair (always from a to b).
 */
#ifndef CONF_H
#define CONF_H

#include "dt.h"

#include <pthread.h>
#include <stdatomic.h>

#ifdef __has_feature
#define CONF_HAS(feature) __has_feature(feature)
#else
#define CONF_HAS(feature) 0
#endif
#if defined(__SANITIZE_THREAD__) || CONF_HAS(thread_sanitizer)
#define CONF_TSAN 1
#else
#define CONF_TSAN 0
#endif
#if defined(__SANITIZE_ADDRESS__) || CONF_HAS(address_sanitizer) || CONF_TSAN
#define CONF_SANITIZED 1
#else
#define CONF_SANITIZED 0
#endif

#define CONF_LOCAL (DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
#define CONF_ARRAY(a) (sizeof(a) / sizeof((a)[0]))

/* --- handles that are none --- */

#define CONF_BAD_COUNT 8

struct conf_bad {
	DAT_HANDLE handle[CONF_BAD_COUNT];
};

/*
 * Values that no call may take for an object, unless it takes an EVD or an IA: NULL, the two
 * constants, the IA, a dead zone, an EVD, memory of the consumer that is no object, and the
 * same misaligned.
 */
static inline void conf_bad_make(struct dt_ia *ia, struct conf_bad *bad)
{
	static uint64_t no_object[64];
	DAT_PZ_HANDLE dead = DAT_HANDLE_NULL;

	dt_ok(dat_pz_create(ia->ia, &dead));
	dt_ok(dat_pz_free(dead));
	*bad = (struct conf_bad){{DAT_HANDLE_NULL, DAT_EVD_ASYNC_EXISTS, DAT_EVD_OUT_OF_SCOPE,
				  ia->ia, dead, ia->async, &no_object[32],
				  (char *)&no_object[32] + 1}};
}

/* Makes the call with each of them as `h`. */
#define conf_refuses(bad, h, call)                                                                 \
	do {                                                                                       \
		for (size_t conf_i = 0; conf_i < CONF_BAD_COUNT; conf_i++) {                       \
			DAT_HANDLE h = (bad)->handle[conf_i];                                      \
			dt_fails(call, DAT_INVALID_HANDLE);                                        \
		}                                                                                  \
	} while (0)

/* --- threads --- */

#define CONF_THREADS 4

struct conf_threads {
	pthread_barrier_t start;
	void *(*fn)(void *arg);
	void *arg;
};

static inline void *conf_thread_main(void *arg)
{
	struct conf_threads *threads = arg;

	pthread_barrier_wait(&threads->start);
	return threads->fn(threads->arg);
}

/* Runs fn(arg) in CONF_THREADS threads that begin together; each returns NULL for success. */
static inline void conf_parallel(void *(*fn)(void *arg), void *arg)
{
	struct conf_threads threads = {.fn = fn, .arg = arg};
	pthread_t id[CONF_THREADS];
	void *failed = NULL;

	assert_int_equal(pthread_barrier_init(&threads.start, NULL, CONF_THREADS), 0);
	for (int i = 0; i < CONF_THREADS; i++)
		assert_int_equal(pthread_create(&id[i], NULL, conf_thread_main, &threads), 0);
	for (int i = 0; i < CONF_THREADS; i++) {
		void *result;

		assert_int_equal(pthread_join(id[i], &result), 0);
		if (result)
			failed = result;
	}
	pthread_barrier_destroy(&threads.start);
	if (failed) {
		print_error("a thread saw: %s\n", (const char *)failed);
		fail();
	}
}

/* For such a thread: the text of the first call that did not succeed. */
#define conf_try(call)                                                                             \
	do {                                                                                       \
		if ((call) != DAT_SUCCESS)                                                         \
			return (void *)(uintptr_t) #call;                                          \
	} while (0)

/* --- single transfers from a to b --- */

static inline DAT_RETURN conf_post_write(struct dt_pair *pair, DAT_LMR_TRIPLET from,
					 DAT_RMR_TRIPLET to, uint64_t cookie)
{
	return dat_ep_post_rdma_write(pair->a.ep, 1, &from, dt_cookie(cookie), &to,
				      DAT_COMPLETION_DEFAULT_FLAG);
}

static inline DAT_RETURN conf_post_read(struct dt_pair *pair, DAT_LMR_TRIPLET to,
					DAT_RMR_TRIPLET from, uint64_t cookie)
{
	return dat_ep_post_rdma_read(pair->a.ep, 1, &to, dt_cookie(cookie), &from,
				     DAT_COMPLETION_DEFAULT_FLAG);
}

static inline DAT_RETURN conf_post_send(struct dt_pair *pair, DAT_LMR_TRIPLET from, uint64_t cookie)
{
	return dat_ep_post_send(pair->a.ep, 1, &from, dt_cookie(cookie),
				DAT_COMPLETION_DEFAULT_FLAG);
}

static inline DAT_RETURN conf_post_recv(struct dt_pair *pair, DAT_LMR_TRIPLET to, uint64_t cookie)
{
	return dat_ep_post_recv(pair->b.ep, 1, &to, dt_cookie(cookie), DAT_COMPLETION_DEFAULT_FLAG);
}

static inline void conf_write(struct dt_pair *pair, DAT_LMR_TRIPLET from, DAT_RMR_TRIPLET to)
{
	dt_ok(conf_post_write(pair, from, to, 0x11));
	dt_expect_dto(pair->a.request, pair->a.ep, 0x11, DAT_DTO_SUCCESS, from.segment_length);
}

static inline void conf_read(struct dt_pair *pair, DAT_LMR_TRIPLET to, DAT_RMR_TRIPLET from)
{
	dt_ok(conf_post_read(pair, to, from, 0x22));
	dt_expect_dto(pair->a.request, pair->a.ep, 0x22, DAT_DTO_SUCCESS, from.segment_length);
}

static inline void conf_send(struct dt_pair *pair, DAT_LMR_TRIPLET from, DAT_LMR_TRIPLET to)
{
	dt_ok(conf_post_recv(pair, to, 0x33));
	dt_ok(conf_post_send(pair, from, 0x44));
	dt_expect_dto(pair->b.recv, pair->b.ep, 0x33, DAT_DTO_SUCCESS, from.segment_length);
	dt_expect_dto(pair->a.request, pair->a.ep, 0x44, DAT_DTO_SUCCESS, from.segment_length);
}

/* Both sides learn that the connection broke. */
static inline void conf_expect_broken(struct dt_pair *pair)
{
	dt_expect_conn(pair->a.conn, pair->a.ep, DAT_CONNECTION_EVENT_BROKEN);
	dt_expect_conn(pair->b.conn, pair->b.ep, DAT_CONNECTION_EVENT_BROKEN);
	assert_int_equal(dt_ep_state(pair->a.ep), DAT_EP_STATE_DISCONNECTED);
	assert_int_equal(dt_ep_state(pair->b.ep), DAT_EP_STATE_DISCONNECTED);
}

/* An operation posted with that cookie is refused at the target and breaks the connection. */
static inline void conf_expect_refused(struct dt_pair *pair, uint64_t cookie)
{
	dt_expect_dto(pair->a.request, pair->a.ep, cookie, DAT_DTO_ERR_REMOTE_ACCESS, 0);
	conf_expect_broken(pair);
}

/* After a break: a new connection of the same endpoints. */
static inline void conf_relink(struct dt_pair *pair)
{
	struct dt_ep *const eps[] = {&pair->a, &pair->b};

	for (size_t i = 0; i < CONF_ARRAY(eps); i++) {
		dt_ok(dat_ep_reset(eps[i]->ep));
		dt_drain(eps[i]->recv);
		dt_drain(eps[i]->request);
		dt_drain(eps[i]->conn);
	}
	dt_ep_link(&pair->ia, &pair->a, &pair->b);
}

#endif
