// SPDX-License-Identifier: BSD-2-Clause
/*
 * Threads that are cancelled anywhere inside calls: no lock stays held, and other threads can use
 * and free the objects.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "dt.h"

#define VICTIMS 60

struct victim {
	struct dt_pair *pair;
	struct dt_buf *from;
	struct dt_buf *to;
	unsigned int kind;
	atomic_uint calls;
};

/* Not inlined, so that a sanitizer does not keep marks of the cancelled frame. */
__attribute__((noinline)) static void transfer_step(struct victim *victim)
{
	DAT_LMR_TRIPLET segment = dt_seg(victim->from, 0, 100);
	DAT_RMR_TRIPLET remote = dt_rseg(victim->to, 0, 100);
	DAT_EVENT event;

	(void)dat_ep_post_rdma_write(victim->pair->a.ep, 1, &segment, dt_cookie(1), &remote,
				     DAT_COMPLETION_SUPPRESS_FLAG);
	segment = dt_seg(victim->to, 0, 100);
	/* full while events are queued; and over iWARP no message may wait for a Receive */
	if (dat_ep_post_recv(victim->pair->b.ep, 1, &segment, dt_cookie(2),
			     DAT_COMPLETION_DEFAULT_FLAG) == DAT_SUCCESS) {
		segment = dt_seg(victim->from, 0, 100);
		(void)dat_ep_post_send(victim->pair->a.ep, 1, &segment, dt_cookie(3),
				       DAT_COMPLETION_DEFAULT_FLAG);
	}
	(void)dat_evd_dequeue(victim->pair->a.request, &event);
	(void)dat_evd_dequeue(victim->pair->b.recv, &event);
}

/* Objects that a cancelled thread created are freed when the adapter is closed. */
__attribute__((noinline)) static void object_step(struct victim *victim)
{
	DAT_REGION_DESCRIPTION region = {.for_va = victim->from->p};
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_LMR_HANDLE lmr;
	DAT_EVD_HANDLE evd;

	if (dat_lmr_create(victim->pair->ia.ia, DAT_MEM_TYPE_VIRTUAL, region, 64,
			   victim->pair->ia.pz, DAT_MEM_PRIV_ALL_FLAG, &lmr, NULL, NULL, NULL,
			   NULL) == DAT_SUCCESS)
		(void)dat_lmr_free(lmr);
	if (dat_evd_create(victim->pair->ia.ia, 4, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &evd) !=
	    DAT_SUCCESS)
		return;
	if (dat_psp_create_any(victim->pair->ia.ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &psp) ==
	    DAT_SUCCESS)
		(void)dat_psp_free(psp);
	(void)dat_evd_free(evd);
}

static void *victim_run(void *arg)
{
	struct victim *victim = arg;

	for (;;) {
		if (victim->kind % 2)
			transfer_step(victim);
		else
			object_step(victim);
		atomic_fetch_add(&victim->calls, 1);
		pthread_testcancel();
	}
	return NULL;
}

static void cancel_one(struct victim *victim, unsigned int calls)
{
	pthread_t thread;
	void *result;

	atomic_store(&victim->calls, 0);
	assert_int_equal(pthread_create(&thread, NULL, victim_run, victim), 0);
	while (atomic_load(&victim->calls) < calls)
		sched_yield();
	assert_int_equal(pthread_cancel(thread), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
}

/* GEN-26 */
static void calls__thread_cancelled_inside__nothing_stays_locked(void **state)
{
	struct dt_pair pair;
	struct dt_buf from, to;
	struct victim victim = {.pair = &pair, .from = &from, .to = &to};

	(void)state;
	dt_pair_open(&pair);
	dt_buf_create(&pair.ia, pair.ia.pz, &from, 4096, DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_create(&pair.ia, pair.ia.pz, &to, 4096, DAT_MEM_PRIV_ALL_FLAG);
	for (victim.kind = 0; victim.kind < VICTIMS; victim.kind++)
		cancel_one(&victim, victim.kind % 7);
	dt_ok(dat_ep_disconnect(pair.a.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(pair.a.conn, pair.a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ok(dat_lmr_free(to.lmr));
	dt_ia_abort(&pair.ia);
	dt_mem_free(from.p, from.mapped);
	dt_mem_free(to.p, to.mapped);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls__thread_cancelled_inside__nothing_stays_locked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
