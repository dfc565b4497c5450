// SPDX-License-Identifier: BSD-2-Clause
/* Handles that must be refused, threads that begin together, and single transfers; see the header.
 */
#include "conf.h"

/* --- invalid handles --- */

void conf_bad_make(struct dt_ia *ia, struct conf_bad *bad)
{
	static uint64_t no_object[64];
	DAT_PZ_HANDLE dead = DAT_HANDLE_NULL;

	dt_ok(dat_pz_create(ia->ia, &dead));
	dt_ok(dat_pz_free(dead));
	*bad = (struct conf_bad){{DAT_HANDLE_NULL, DAT_EVD_ASYNC_EXISTS, DAT_EVD_OUT_OF_SCOPE,
				  ia->ia, dead, ia->async, &no_object[32],
				  (char *)&no_object[32] + 1}};
}

/* --- threads --- */

struct conf_threads {
	pthread_barrier_t start;
	void *(*fn)(void *arg);
	void *arg;
};

static void *conf_thread_main(void *arg)
{
	struct conf_threads *threads = arg;

	pthread_barrier_wait(&threads->start);
	return threads->fn(threads->arg);
}

void conf_parallel(void *(*fn)(void *arg), void *arg)
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

/* --- single transfers from a to b --- */

DAT_RETURN conf_post_write(struct dt_pair *pair, DAT_LMR_TRIPLET from, DAT_RMR_TRIPLET to,
			   uint64_t cookie)
{
	return dat_ep_post_rdma_write(pair->a.ep, 1, &from, dt_cookie(cookie), &to,
				      DAT_COMPLETION_DEFAULT_FLAG);
}

DAT_RETURN conf_post_read(struct dt_pair *pair, DAT_LMR_TRIPLET to, DAT_RMR_TRIPLET from,
			  uint64_t cookie)
{
	return dat_ep_post_rdma_read(pair->a.ep, 1, &to, dt_cookie(cookie), &from,
				     DAT_COMPLETION_DEFAULT_FLAG);
}

DAT_RETURN conf_post_send(struct dt_pair *pair, DAT_LMR_TRIPLET from, uint64_t cookie)
{
	return dat_ep_post_send(pair->a.ep, 1, &from, dt_cookie(cookie),
				DAT_COMPLETION_DEFAULT_FLAG);
}

DAT_RETURN conf_post_recv(struct dt_pair *pair, DAT_LMR_TRIPLET to, uint64_t cookie)
{
	return dat_ep_post_recv(pair->b.ep, 1, &to, dt_cookie(cookie), DAT_COMPLETION_DEFAULT_FLAG);
}

void conf_write(struct dt_pair *pair, DAT_LMR_TRIPLET from, DAT_RMR_TRIPLET to)
{
	dt_ok(conf_post_write(pair, from, to, 0x11));
	dt_expect_dto(pair->a.request, pair->a.ep, 0x11, DAT_DTO_SUCCESS, from.segment_length);
}

void conf_read(struct dt_pair *pair, DAT_LMR_TRIPLET to, DAT_RMR_TRIPLET from)
{
	dt_ok(conf_post_read(pair, to, from, 0x22));
	dt_expect_dto(pair->a.request, pair->a.ep, 0x22, DAT_DTO_SUCCESS, from.segment_length);
}

void conf_send(struct dt_pair *pair, DAT_LMR_TRIPLET from, DAT_LMR_TRIPLET to)
{
	dt_ok(conf_post_recv(pair, to, 0x33));
	dt_ok(conf_post_send(pair, from, 0x44));
	dt_expect_dto(pair->b.recv, pair->b.ep, 0x33, DAT_DTO_SUCCESS, from.segment_length);
	dt_expect_dto(pair->a.request, pair->a.ep, 0x44, DAT_DTO_SUCCESS, from.segment_length);
}

void conf_expect_broken(struct dt_pair *pair)
{
	dt_expect_conn(pair->a.conn, pair->a.ep, DAT_CONNECTION_EVENT_BROKEN);
	dt_expect_conn(pair->b.conn, pair->b.ep, DAT_CONNECTION_EVENT_BROKEN);
	assert_int_equal(dt_ep_state(pair->a.ep), DAT_EP_STATE_DISCONNECTED);
	assert_int_equal(dt_ep_state(pair->b.ep), DAT_EP_STATE_DISCONNECTED);
}

void conf_expect_refused(struct dt_pair *pair, uint64_t cookie)
{
	dt_expect_dto(pair->a.request, pair->a.ep, cookie, DAT_DTO_ERR_REMOTE_ACCESS, 0);
	conf_expect_broken(pair);
}

void conf_relink(struct dt_pair *pair)
{
	struct dt_ep *const eps[] = {&pair->a, &pair->b};

	for (size_t i = 0; i < COUNT_OF(eps); i++) {
		dt_ok(dat_ep_reset(eps[i]->ep));
		dt_drain(eps[i]->recv);
		dt_drain(eps[i]->request);
		dt_drain(eps[i]->conn);
	}
	dt_ep_link(&pair->ia, &pair->a, &pair->b);
}
