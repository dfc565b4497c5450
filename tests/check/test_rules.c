// SPDX-License-Identifier: BSD-2-Clause
/*
 * Each rule of the provider that checks: the misuse is reported, once and with the right object, and
 * its correct twin is silent (CHECK-RULE-01 to -26).
 */
#include "rules_util.h"

#include <sys/mman.h>

/* ---- memory ---- */

/* CHECK-RULE-01, CHECK-REP-01 */
static void send_changed(void **state)
{
	struct rig *rig = *state;

	post_send(&rig->a, dt_seg(&rig->x, 0, 64), 1, FLAG);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 64), 2);
	expect_received(&rig->b, 2, 64);
	expect_sent(&rig->a, 1, 64);
	expect_silence();

	POST_SEND(rig, 64, 3);
	rig->x.p[63] ^= 1;
	post_recv(&rig->b, dt_seg(&rig->y, 0, 64), 4);
	expect_received(&rig->b, 4, 64);
	expect_sent(&rig->a, 3, 64);
	assert_int_equal(reports.count, 1);
	assert_ptr_equal(reports.handles[0], rig->a.ep);
	assert_non_null(strstr(reports.texts[0], "in dat_evd_"));
	assert_non_null(strstr(reports.texts[0], "thread"));
	assert_non_null(strstr(reports.texts[0], "was made by dat_ep_create"));
	assert_non_null(strstr(reports.texts[0], "DAT_CONNECTION_EVENT_ESTABLISHED"));
	assert_non_null(strstr(reports.texts[0], "EP-RDMAW-14, dat_ep_post_send(3)"));
	expect_report("send-changed", "64 bytes");
}

/* CHECK-RULE-01: a long buffer is compared in pieces; its ends are among them. */
static void send_changed_long(void **state)
{
	struct rig *rig = *state;

	POST_SEND(rig, 60000, 1);
	rig->x.p[59999] ^= 1;
	post_recv(&rig->b, dt_seg(&rig->y, 0, 60000), 2);
	expect_received(&rig->b, 2, 60000);
	expect_sent(&rig->a, 1, 60000);
	expect_report("send-changed", "60000 bytes");
}

/* CHECK-RULE-02 */
static void recv_written(void **state)
{
	struct rig *rig = *state;

	post_recv(&rig->b, dt_seg(&rig->y, 0, 64), 1);
	post_send(&rig->a, dt_seg(&rig->x, 0, 8), 2, FLAG);
	expect_received(&rig->b, 1, 8);
	expect_sent(&rig->a, 2, 8);
	expect_silence();

	post_recv(&rig->b, dt_seg(&rig->y, 0, 64), 3);
	rig->y.p[60] ^= 1;
	post_send(&rig->a, dt_seg(&rig->x, 0, 8), 4, FLAG);
	expect_received(&rig->b, 3, 8);
	expect_sent(&rig->a, 4, 8);
	expect_report("recv-written", "behind the 8");
}

/* CHECK-RULE-03 */
static void recv_overlap(void **state)
{
	struct rig *rig = *state;

	post_recv(&rig->b, dt_seg(&rig->y, 0, 64), 1);
	post_recv(&rig->b, dt_seg(&rig->y, 64, 64), 2);
	expect_silence();
	post_recv(&rig->b, dt_seg(&rig->y, 127, 64), 3);
	expect_report("recv-overlap", "was made by dat_ep_create");
}

/* CHECK-RULE-03: on a shared receive queue. */
static void recv_overlap_srq(void **state)
{
	struct rig *rig = *state;
	DAT_SRQ_ATTR attr = {.max_recv_dtos = 4, .max_recv_iov = 1};
	DAT_LMR_TRIPLET one = dt_seg(&rig->y, 0, 8), other = dt_seg(&rig->y, 8, 8);
	DAT_SRQ_HANDLE srq;

	dt_ok(dat_srq_create(rig->ia.ia, rig->ia.pz, &attr, &srq));
	dt_ok(dat_srq_post_recv(srq, 1, &one, dt_cookie(1)));
	dt_ok(dat_srq_post_recv(srq, 1, &other, dt_cookie(2)));
	expect_silence();
	dt_ok(dat_srq_post_recv(srq, 1, &one, dt_cookie(3)));
	expect_report("recv-overlap", "was made by dat_srq_create");
}

/* CHECK-RULE-04 */
static void lmr_in_use(void **state)
{
	struct rig *rig = *state;
	struct dt_buf used, idle;

	dt_buf_create(&rig->ia, rig->ia.pz, &used, 4096, DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_create(&rig->ia, rig->ia.pz, &idle, 4096, DAT_MEM_PRIV_ALL_FLAG);
	post_recv(&rig->b, dt_seg(&used, 0, 64), 1);
	dt_buf_free(&idle);
	expect_silence();
	dt_ok(dat_lmr_free(used.lmr));
	expect_report("lmr-in-use", "was made by dat_lmr_create");
	dt_mem_free(used.p, used.mapped);
}

/* CHECK-RULE-05 */
static void lmr_unmapped(void **state)
{
	struct rig *rig = *state;
	struct dt_buf buf;
	void *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	dt_lmr_create(&rig->ia, rig->ia.pz, p, 8192, DAT_MEM_PRIV_ALL_FLAG, &buf);
	munmap((char *)p + 4096, 4096);
	dt_ok(dat_lmr_free(buf.lmr));
	munmap(p, 4096);
	expect_report("lmr-unmapped", "8192 bytes");
}

/* CHECK-RULE-06 */
static void iov_outside(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, RIG_LEN - 64, 65);

	dt_fails(dat_ep_post_send(rig->a.ep, 1, &seg, dt_cookie(1), FLAG), DAT_INVALID_PARAMETER);
	expect_report("iov-outside", "was made by dat_lmr_create");
}

/* CHECK-RULE-07 */
static void lmr_key(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg;
	struct dt_buf buf;

	dt_buf_create(&rig->ia, rig->ia.pz, &buf, 4096, DAT_MEM_PRIV_ALL_FLAG);
	seg = dt_seg(&buf, 0, 64);
	dt_buf_free(&buf);
	expect_silence();
	dt_fails(dat_ep_post_send(rig->a.ep, 1, &seg, dt_cookie(1), FLAG),
		 DAT_PRIVILEGES_VIOLATION);
	expect_report("lmr-key", "dat_lmr_free");
}

/* CHECK-RULE-08 */
static void remote_access(void **state)
{
	struct rig *rig = *state;
	DAT_RMR_TRIPLET remote;
	struct dt_buf buf;

	dt_buf_create(&rig->ia, rig->ia.pz, &buf, 4096, DAT_MEM_PRIV_ALL_FLAG);
	remote = dt_rseg(&buf, 0, 64);
	post_write(&rig->a, dt_seg(&rig->x, 0, 64), remote, 1, FLAG);
	expect_sent(&rig->a, 1, 64);
	dt_buf_free(&buf);
	expect_silence();
	post_write(&rig->a, dt_seg(&rig->x, 0, 64), remote, 2, FLAG);
	expect_request(&rig->a, 2, DAT_DTO_ERR_REMOTE_ACCESS);
	assert_int_equal(count_reports("remote-access", "was freed by dat_lmr_free"), 1);
	expect_report("remote-access", "of this process, which is freed");
}

/* CHECK-RULE-08: the key of a region of another instance of the process. */
static void remote_access_elsewhere(void **state)
{
	struct rig *rig = *state;
	DAT_RMR_TRIPLET remote;
	struct dt_buf buf;
	struct dt_ia ia;

	dt_ia_open(&ia);
	dt_buf_create(&ia, ia.pz, &buf, 4096, DAT_MEM_PRIV_ALL_FLAG);
	remote = dt_rseg(&buf, 0, 64);
	dt_buf_free(&buf);
	dt_ia_close(&ia);
	expect_silence();
	POST_WRITE(&rig->a, dt_seg(&rig->x, 0, 64), remote, 1, FLAG);
	expect_request(&rig->a, 1, DAT_DTO_ERR_REMOTE_ACCESS);
	expect_report("remote-access", "was freed by dat_lmr_free");
}

/* CHECK-RULE-08: the key that a window had before it was bound again. */
static void remote_access_window(void **state)
{
	struct rig *rig = *state;
	DAT_RMR_HANDLE rmr = rmr_create(rig);
	DAT_RMR_CONTEXT old, new;

	old = bind_now(&rig->b, rmr, dt_seg(&rig->y, 0, 64), BIND_LOCAL | BIND_REMOTE);
	new = bind_now(&rig->b, rmr, dt_seg(&rig->y, 0, 64), BIND_LOCAL | BIND_REMOTE);
	post_write(&rig->a, dt_seg(&rig->x, 0, 8), y_seg(rig, new, 0, 8), 1, FLAG);
	expect_sent(&rig->a, 1, 8);
	expect_silence();
	post_write(&rig->a, dt_seg(&rig->x, 0, 8), y_seg(rig, old, 0, 8), 2, FLAG);
	expect_request(&rig->a, 2, DAT_DTO_ERR_REMOTE_ACCESS);
	assert_int_equal(count_reports("remote-access", "had before its last bind"), 1);
	expect_report("remote-access", "was made by dat_rmr_create");
	dt_ok(dat_rmr_free(rmr));
}

/* CHECK-RULE-09 */
static void rmr_in_use(void **state)
{
	struct rig *rig = *state;
	DAT_RMR_HANDLE rmr = rmr_create(rig);

	bind_now(&rig->b, rmr, dt_seg(&rig->y, 0, 64), BIND_LOCAL);
	bind_now(&rig->b, rmr, dt_seg(&rig->y, 0, 32), BIND_LOCAL);
	expect_silence();
	bind_post(&rig->b, rmr, dt_seg(&rig->y, 0, 64), BIND_LOCAL, 3, FLAG);
	dt_ok(dat_rmr_free(rmr));
	expect_report("rmr-in-use", "was made by dat_rmr_create");
}

/* ---- queues ---- */

/* CHECK-RULE-10, CHECK-RULE-12 */
static void evd_overflow_and_events_left(void **state)
{
	struct rig *rig = *state;
	DAT_EVD_HANDLE small = dt_evd_create(&rig->ia, 2, DAT_EVD_DTO_FLAG);
	DAT_EP_HANDLE ep;

	dt_ok(dat_ep_create(rig->ia.ia, rig->ia.pz, small, rig->a.request, rig->a.conn, NULL, &ep));
	for (unsigned i = 0; i < 3; i++) {
		DAT_LMR_TRIPLET seg = dt_seg(&rig->y, i * 8, 8);

		expect_silence();
		dt_ok(dat_ep_post_recv(ep, 1, &seg, dt_cookie(i), FLAG));
	}
	expect_report("evd-overflow", "holds 2");
	dt_ok(dat_ep_free(ep));
	dt_ok(dat_evd_free(small));
	expect_silence(); /* nothing was in it */
}

/* CHECK-RULE-12 */
static void events_left(void **state)
{
	struct rig *rig = *state;
	DAT_EVD_HANDLE evd = dt_evd_create(&rig->ia, 8, DAT_EVD_DTO_FLAG);
	struct dt_ep a = rig->a, b = rig->b;

	dt_ep_create(&rig->ia, rig->ia.pz, NULL, &a);
	dt_ep_create(&rig->ia, rig->ia.pz, NULL, &b);
	dt_ok(dat_ep_free(b.ep));
	dt_ok(dat_ep_create(rig->ia.ia, rig->ia.pz, evd, b.request, b.conn, NULL, &b.ep));
	dt_ep_link(&rig->ia, &a, &b);
	post_recv(&b, dt_seg(&rig->y, 0, 8), 1);
	post_send(&a, dt_seg(&rig->x, 0, 8), 2, FLAG);
	expect_sent(&a, 2, 8);
	dt_ok(dat_ep_disconnect(b.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_ended(&b, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ok(dat_ep_free(b.ep));
	forget_reports();
	dt_ok(dat_evd_free(evd));
	expect_report("events-left", "1 events");
}

/* CHECK-RULE-11 */
static void all_suppressed(void **state)
{
	struct rig *rig = *state;

	for (DAT_COUNT i = 0; i < rig->attr_a.max_request_dtos; i++) {
		post_write(&rig->a, dt_seg(&rig->x, 0, 8), dt_rseg(&rig->y, 0, 8), (uint64_t)i + 1,
			   DAT_COMPLETION_SUPPRESS_FLAG);
		if (i == 3) { /* one with an event starts anew */
			post_write(&rig->a, dt_seg(&rig->x, 0, 8), dt_rseg(&rig->y, 0, 8), 1000,
				   FLAG);
			expect_sent(&rig->a, 1000, 8);
		}
	}
	expect_silence();
	for (DAT_COUNT i = 0; i < 5; i++) {
		DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
		DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 8);
		DAT_RETURN ret;

		do
			ret = dat_ep_post_rdma_write(rig->a.ep, 1, &seg,
						     dt_cookie(2000 + (uint64_t)i), &remote,
						     DAT_COMPLETION_SUPPRESS_FLAG);
		while (DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES);
		dt_ok(ret);
	}
	expect_report("all-suppressed", "without an event");
}

/* CHECK-RULE-13 */
static void recv_short(void **state)
{
	struct rig *rig = *state;

	post_recv(&rig->b, dt_seg(&rig->y, 0, 63), 1);
	post_send(&rig->a, dt_seg(&rig->x, 0, 64), 2, FLAG);
	dt_expect_dto(rig->b.recv, rig->b.ep, 1, DAT_DTO_ERR_LOCAL_LENGTH, DT_ANY_LEN);
	expect_report("recv-short", "63 bytes");
}

/* CHECK-RULE-26 */
static void recv_none(void **state)
{
	struct rig *rig = *state;

	reports.has_recv_none = true;
	post_recv(&rig->b, dt_seg(&rig->y, 0, 8), 1);
	post_recv(&rig->b, dt_seg(&rig->y, 8, 8), 2);
	for (uint64_t cookie = 1; cookie <= 2; cookie++) {
		post_send(&rig->a, dt_seg(&rig->x, 0, 8), cookie, FLAG);
		expect_received(&rig->b, cookie, 8);
		expect_sent(&rig->a, cookie, 8);
		if (cookie == 1) /* there is another one */
			post_recv(&rig->b, dt_seg(&rig->y, 16, 8), 3);
	}
	expect_silence();
	post_send(&rig->a, dt_seg(&rig->x, 0, 8), 3, FLAG);
	expect_received(&rig->b, 3, 8);
	expect_sent(&rig->a, 3, 8);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 8), 4);
	expect_report("recv-none", "had no Receive for ");
}

/* CHECK-RULE-14 */
static void cookie_twice(void **state)
{
	struct rig *rig = *state;

	post_recv(&rig->b, dt_seg(&rig->y, 0, 8), 1);
	post_recv(&rig->b, dt_seg(&rig->y, 8, 8), 2);
	expect_silence();
	post_recv(&rig->b, dt_seg(&rig->y, 16, 8), 1);
	expect_report("cookie-twice", "0x1 already");
}

/* ---- life ---- */

/* CHECK-RULE-15, CHECK-RULE-16 */
static void left_open(void **state)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;

	(void)state;
	dt_ok(dat_ia_open((DAT_NAME_PTR)dt_adapter(), 8, &async, &ia));
	dt_ok(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	expect_silence();
	async = DAT_HANDLE_NULL;
	dt_ok(dat_ia_open((DAT_NAME_PTR)dt_adapter(), 8, &async, &ia));
	dt_ok(dat_pz_create(ia, &pz));
	dt_fails(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE);
	assert_int_equal(count_reports("left-open", "was made by dat_pz_create"), 1);
	assert_int_equal(count_reports("bad-state", "dat_ia_close is refused"), 1);
	forget_reports();
	dt_ok(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	expect_report("closed-over", "was made by dat_pz_create");
}

/* CHECK-RULE-17, CHECK-GEN-07 */
static void used_freed(void **state)
{
	struct rig *rig = *state;
	DAT_PZ_HANDLE pz;

	dt_ok(dat_pz_create(rig->ia.ia, &pz));
	dt_ok(dat_pz_free(pz));
	expect_silence();
	dt_fails_with(dat_pz_free(pz), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	expect_report("used-freed", "then: dat_pz_free");
}

static void *wait_on(void *evd)
{
	DAT_EVENT event;
	DAT_COUNT more;

	(void)dat_evd_wait((DAT_EVD_HANDLE)evd, DT_WAIT_US, 1, &event, &more);
	return NULL;
}

/* CHECK-RULE-18 */
static void two_waiters(void **state)
{
	struct rig *rig = *state;
	struct dto_waiter waiter;
	pthread_t thread;

	dto_waiter_start(&waiter, rig->b.recv, 1);
	forget_reports(); /* the harness takes events meanwhile, which is refused */
	assert_int_equal(pthread_create(&thread, NULL, wait_on, rig->b.recv), 0);
	pthread_join(thread, NULL);
	assert_int_equal(count_reports("two-waiters", "another thread waits"), 1);
	post_recv(&rig->b, dt_seg(&rig->y, 0, 8), 7);
	post_send(&rig->a, dt_seg(&rig->x, 0, 8), 8, FLAG);
	dto_waiter_wakes(&waiter, 7, 0);
	expect_sent(&rig->a, 8, 8);
}

/* CHECK-RULE-19 */
static void bad_state(void **state)
{
	struct rig *rig = *state;

	dt_ok(dat_ep_disconnect(rig->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_ended(&rig->a, DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_ended(&rig->b, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ok(dat_ep_reset(rig->a.ep));
	expect_silence();
	dt_fails(dat_ep_disconnect(rig->a.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_STATE);
	expect_report("bad-state", "DAT_CONNECTION_EVENT_DISCONNECTED, dat_ep_reset");
}

/* CHECK-RULE-20 */
static void cr_unanswered(void **state)
{
	struct dt_listener listener;
	struct dt_ia ia;
	struct dt_ep ep;

	(void)state;
	dt_ia_open(&ia);
	dt_listen(&ia, &listener);
	dt_ep_create(&ia, ia.pz, NULL, &ep);
	dt_connect(&ia, ep.ep, listener.qual);
	dt_ok(dat_cr_reject(dt_request(&listener)));
	expect_ended(&ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
	expect_silence();
	dt_ok(dat_ep_reset(ep.ep));
	dt_connect(&ia, ep.ep, listener.qual);
	(void)dt_request(&listener);
	dt_ia_abort(&ia);
	assert_int_equal(count_reports("cr-unanswered", "DAT_CONNECTION_REQUEST_EVENT"), 1);
}

/* CHECK-RULE-21 */
static void not_disconnected(void **state)
{
	struct rig *rig = *state;

	dt_ok(dat_ep_disconnect(rig->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_ended(&rig->a, DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_ended(&rig->b, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ok(dat_ep_reset(rig->a.ep));
	dt_ok(dat_ep_reset(rig->b.ep));
	dt_ep_link(&rig->ia, &rig->a, &rig->b);
	expect_silence();
	dt_ok(dat_ep_free(rig->a.ep));
	expect_report("not-disconnected", "is connected");
}

/* ---- order, threads, portability ---- */

/* CHECK-RULE-22 */
static void write_after_read(void **state)
{
	struct rig *rig = *state;

	post_read(&rig->a, dt_seg(&rig->x, 0, 64), dt_rseg(&rig->y, 0, 64), 1, FLAG);
	post_write(&rig->a, dt_seg(&rig->x, 0, 64), dt_rseg(&rig->y, 64, 64), 2,
		   DAT_COMPLETION_BARRIER_FENCE_FLAG);
	post_write(&rig->a, dt_seg(&rig->x, 64, 64), dt_rseg(&rig->y, 128, 64), 3, FLAG);
	expect_silence();
	post_write(&rig->a, dt_seg(&rig->x, 0, 64), dt_rseg(&rig->y, 64, 64), 4, FLAG);
	assert_int_equal(count_reports("write-after-read", "an outstanding RDMA Read"), 1);
	for (uint64_t cookie = 1; cookie <= 4; cookie++)
		expect_sent(&rig->a, cookie, 64);
}

static void *query(void *ep)
{
	DAT_EP_PARAM param;

	(void)dat_ep_query((DAT_EP_HANDLE)ep, DAT_EP_FIELD_EP_STATE, &param);
	return NULL;
}

static void *query_many(void *ep)
{
	while (!count_reports("two-threads", ""))
		query(ep);
	return NULL;
}

/* CHECK-RULE-23: two threads query one endpoint until their calls overlap. */
static void two_threads(void **state)
{
	struct rig *rig = *state;
	pthread_t threads[2];

	query(rig->a.ep);
	assert_int_equal(pthread_create(&threads[0], NULL, query, rig->a.ep), 0);
	pthread_join(threads[0], NULL);
	expect_silence(); /* one after the other */
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, query_many, rig->a.ep), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	expect_report("two-threads", "another thread is in dat_ep_query");
}

static void *disconnect_many(void *ep)
{
	while (!count_reports("two-threads", "then:"))
		(void)dat_ep_disconnect((DAT_EP_HANDLE)ep, DAT_CLOSE_ABRUPT_FLAG);
	return NULL;
}

/* CHECK-REP-01: a history that grows while it is printed is that of one moment: eight steps. */
static void history_grows(void **state)
{
	struct rig *rig = *state;
	pthread_t threads[4];
	unsigned steps = 0;
	const char *at;

	dt_ok(dat_ep_disconnect(rig->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, disconnect_many, rig->a.ep), 0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	at = strstr(reports.texts[0], "then:");
	for (; (at = strstr(at, " dat_ep_disconnect")) != NULL; at++)
		steps++;
	assert_in_range(steps, 1, 8);
	expect_report("two-threads", "another thread is in dat_ep_disconnect");
	expect_ended(&rig->a, DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_ended(&rig->b, DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* CHECK-RULE-25 */
static void mixed_evd(void **state)
{
	struct rig *rig = *state;

	dt_ok(dat_evd_free(dt_evd_create(&rig->ia, 8, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG)));
	expect_silence();
	dt_ok(dat_evd_free(dt_evd_create(&rig->ia, 8, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG)));
	expect_report("mixed-evd", "0x60");
}

/* ---- reports ---- */

static void change_and_send(struct rig *rig, uint64_t cookie)
{
	POST_SEND(rig, 8, cookie);
	rig->x.p[0] ^= 1;
	post_recv(&rig->b, dt_seg(&rig->y, 0, 8), cookie);
	expect_received(&rig->b, cookie, 8);
	expect_sent(&rig->a, cookie, 8);
}

/* CHECK-REP-03 */
static void reported_once(void **state)
{
	struct rig *rig = *state;

	for (uint64_t cookie = 1; cookie < 4; cookie++)
		change_and_send(rig, cookie);
	expect_report("send-changed", "8 bytes");
}

/* CHECK-GEN-05 */
static void absent_adapter(void **state)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	(void)state;
	dt_fails_with(dat_ia_open("no-such-adapter", 8, &async, &ia), DAT_PROVIDER_NOT_FOUND,
		      DAT_NAME_NOT_REGISTERED);
	dt_fails_with(dat_ia_open("check:no-such-adapter", 8, &async, &ia), DAT_PROVIDER_NOT_FOUND,
		      DAT_NAME_NOT_REGISTERED);
}

/* CHECK-REP-02 */
static void handler_refused(void **state)
{
	(void)state;
	dt_fails_with(dat_opendat_check_handler(NULL, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		check_test(send_changed),
		check_test(send_changed_long),
		check_test(recv_written),
		check_test(recv_overlap),
		check_test_bare(recv_overlap_srq),
		check_test(lmr_in_use),
		check_test_bare(lmr_unmapped),
		check_test(iov_outside),
		check_test(lmr_key),
		check_test(remote_access),
		check_test(remote_access_elsewhere),
		check_test(remote_access_window),
		check_test(rmr_in_use),
		check_test(evd_overflow_and_events_left),
		check_test_bare(events_left),
		check_test(all_suppressed),
		check_test(recv_short),
		check_test(recv_none),
		check_test(cookie_twice),
		check_test_bare(left_open),
		check_test_bare(used_freed),
		check_test(two_waiters),
		check_test(bad_state),
		check_test_bare(cr_unanswered),
		check_test(not_disconnected),
		check_test(write_after_read),
		check_test(two_threads),
		check_test(history_grows),
		check_test_bare(mixed_evd),
		check_test(reported_once),
		check_test_bare(absent_adapter),
		check_test_bare(handler_refused),
	};

	check_rules_on();
	return cmocka_run_group_tests_name("check rules", tests, NULL, NULL);
}
