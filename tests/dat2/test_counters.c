// SPDX-License-Identifier: BSD-2-Clause
/* Counters of adapters, endpoints and EVDs: each is compared with what the test did. */
#include <stdio.h>
#include <unistd.h>

#include <dat2/dat_ib_extensions.h>

#include "dto_util.h"
#include "srq_util.h"

#define GUARD UINT64_C(0x5a5a5a5a5a5a5a5a)
#define SENDS 2000
#define TEXT 4096

static uint64_t counter(DAT_HANDLE handle, int number)
{
	uint64_t value[2] = {GUARD, GUARD};

	dt_ok(dat_query_counters(handle, number, value, 0));
	assert_int_equal(value[1], GUARD);
	return value[0];
}

static uint64_t reset(DAT_HANDLE handle, int number)
{
	uint64_t value = GUARD;

	dt_ok(dat_ib_query_counters(handle, number, &value, 1));
	return value;
}

/* --- the call --- */

static void expect_all(DAT_HANDLE handle, int count)
{
	uint64_t values[DCNT_IA_ALL_COUNTERS + 1], one[2];

	for (int i = 0; i <= count; i++)
		values[i] = GUARD;
	dt_ok(dat_ib_query_counters(handle, count, values, 0));
	assert_int_equal(values[count], GUARD);
	for (int i = 0; i < count; i++) {
		one[0] = one[1] = GUARD;
		dt_ok(dat_ib_query_counters(handle, i, one, 0));
		assert_int_equal(one[0], values[i]);
		assert_int_equal(one[1], GUARD);
	}
	for (int bad = -1; bad <= count + 1; bad += count + 2) {
		dt_fails_with(dat_ib_query_counters(handle, bad, values, 0), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG2);
		dt_fails_with(dat_ib_print_counters(handle, bad, 0), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG2);
	}
	dt_fails_with(dat_ib_query_counters(handle, 0, NULL, 0), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	assert_int_equal(values[count], GUARD);
}

/* D2-CNT-01 D2-CNT-02 D2-CNT-03 D2-CNT-04 D2-CNT-15 */
static void query_counters__each_kind__its_own_set_and_no_more(void **state)
{
	struct rig *rig = *state;

	expect_all(rig->ia.ia, 85);
	expect_all(rig->a.ep, 24);
	expect_all(rig->a.recv, 10);
}

static void expect_none(DAT_HANDLE handle)
{
	uint64_t value;

	dt_fails_with(dat_ib_query_counters(handle, 0, &value, 0), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE1);
	dt_fails_with(dat_ib_print_counters(handle, 0, 0), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	dt_fails_with(dat_ib_start_counter(handle, 0), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	dt_fails_with(dat_ib_stop_counter(handle, 0), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
}

/* D2-CNT-16 */
static void counters__handle_of_another_kind__refused(void **state)
{
	struct dt_ia *ia = *state;
	struct dt_ep ep;

	expect_none(DAT_HANDLE_NULL);
	expect_none(DT_NEVER_A_HANDLE);
	expect_none(ia->pz);
	dt_ep_create(ia, ia->pz, NULL, &ep);
	dt_ep_free(&ep);
	expect_none(ep.ep);
	expect_none(ep.recv);
}

/* D2-CNT-13 */
static void start_and_stop__each_type__accepted_or_refused(void **state)
{
	struct dt_ia *ia = *state;

	dt_ok(dat_ib_start_counter(ia->ia, DCNT_IA_CM));
	dt_ok(dat_ib_stop_counter(ia->ia, DCNT_IA_CM));
	assert_int_equal(counter(ia->ia, DCNT_IA_PZ_CREATE), 1);
	for (int type = DCNT_IA_LNK; type <= DCNT_IA_DIAG; type++) {
		dt_fails(dat_ib_start_counter(ia->ia, type), DAT_MODEL_NOT_SUPPORTED);
		dt_fails(dat_ib_stop_counter(ia->ia, type), DAT_MODEL_NOT_SUPPORTED);
	}
	dt_fails_with(dat_ib_start_counter(ia->ia, 3), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_fails_with(dat_ib_stop_counter(ia->ia, -1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

/* D2-CNT-14 D2-ATTR-15 */
static void named_attributes__counters__true(void **state)
{
	struct dt_ia *ia = *state;
	const char *value = NULL;

	for (DAT_COUNT i = 0; i < ia->provider.num_provider_specific_attr; i++)
		if (!strcmp(ia->provider.provider_specific_attr[i].name, DAT_IB_ATTR_COUNTERS))
			value = ia->provider.provider_specific_attr[i].value;
	assert_non_null(value);
	assert_string_equal(value, "TRUE");
}

/* What a call prints to the standard output. */
static void printed(DAT_HANDLE handle, int number, int is_reset, char text[TEXT])
{
	FILE *file = tmpfile();
	int before;
	size_t size;

	assert_non_null(file);
	fflush(stdout);
	before = dup(STDOUT_FILENO);
	assert_true(before >= 0);
	assert_int_equal(dup2(fileno(file), STDOUT_FILENO), STDOUT_FILENO);
	dt_ok(dat_print_counters(handle, number, is_reset));
	fflush(stdout);
	assert_int_equal(dup2(before, STDOUT_FILENO), STDOUT_FILENO);
	close(before);
	rewind(file);
	size = fread(text, 1, TEXT - 1, file);
	text[size] = '\0';
	fclose(file);
}

/* D2-CNT-12: the order is that of the numbers */
static void print_counters__some_are_0__the_others_printed(void **state)
{
	struct dt_ia *ia = *state;
	char text[TEXT];
	struct dt_ep ep;

	dt_ep_create(ia, ia->pz, NULL, &ep);
	printed(ia->ia, DCNT_IA_ALL_COUNTERS, 0, text);
	assert_string_equal(text, "DCNT_IA_PZ_CREATE 1\n"
				  "DCNT_IA_EVD_CREATE 4\n" /* with that of the open */
				  "DCNT_IA_EP_CREATE 1\n");
	printed(ia->ia, DCNT_IA_EVD_CREATE, 1, text);
	assert_string_equal(text, "DCNT_IA_EVD_CREATE 4\n");
	printed(ia->ia, DCNT_IA_EVD_CREATE, 0, text);
	assert_string_equal(text, "");
	printed(ep.ep, DCNT_EP_ALL_COUNTERS, 0, text);
	assert_string_equal(text, "");
	dt_no_event(ep.recv);
	printed(ep.recv, DCNT_EVD_ALL_COUNTERS, 0, text);
	assert_string_equal(text, "DCNT_EVD_DEQUEUE 1\nDCNT_EVD_DEQUEUE_NOT_FOUND 1\n");
	dt_ep_free(&ep);
}

/* --- endpoints --- */

static void expect_counters(DAT_HANDLE handle, const uint64_t *expected, int count)
{
	uint64_t found[DCNT_IA_ALL_COUNTERS];

	dt_ok(dat_ib_query_counters(handle, count, found, 0));
	for (int i = 0; i < count; i++) {
		if (found[i] != expected[i])
			print_error("counter %d\n", i);
		assert_int_equal(found[i], expected[i]);
	}
}

/* One of each, with a length of its own; each call of DAT 1.2 on its fast path and on its slow one. */
static void post_each(struct rig *rig)
{
	DAT_LMR_TRIPLET word = dt_seg(&rig->x, 0, 8), two[2] = {word, word};
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 512);

	post_recv(&rig->b, dt_seg(&rig->y, 0, 300), 1);
	dt_ok(dat_ep_post_recv(rig->b.ep, 0, NULL, dt_cookie(2), 0));
	post_send(&rig->a, dt_seg(&rig->x, 0, 100), 3, 0);
	dt_ok(dat_ep_post_send(rig->a.ep, 0, NULL, dt_cookie(4), 0));
	expect_sent(&rig->a, 3, 100);
	expect_sent(&rig->a, 4, 0);
	expect_received(&rig->b, 1, 100);
	expect_received(&rig->b, 2, 0);
	post_write(&rig->a, dt_seg(&rig->x, 0, 30), remote, 5, 0);
	expect_request(&rig->a, 5, DAT_DTO_SUCCESS);
	dt_ok(dat_ep_post_rdma_write(rig->a.ep, 2, two, dt_cookie(6), &remote, 0));
	expect_request(&rig->a, 6, DAT_DTO_SUCCESS);
	post_read(&rig->a, dt_seg(&rig->x, 0, 40), dt_rseg(&rig->y, 0, 40), 7, 0);
	expect_request(&rig->a, 7, DAT_DTO_SUCCESS);
}

/* The operations of DAT 2.0: a Write of 8 bytes, and atomic ones. */
static void post_extended(struct rig *rig)
{
	DAT_LMR_TRIPLET word = dt_seg(&rig->x, 0, 8);
	DAT_RMR_TRIPLET remote;
	struct dt_buf target;

	dt_buf_create(&rig->ia, rig->ia.pz, &target, 64,
		      (DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG | DAT_IB_MEM_PRIV_REMOTE_ATOMIC));
	remote = dt_rseg(&target, 0, 8);
	post_recv(&rig->b, dt_seg(&rig->y, 64, 16), 8);
	dt_ok(dat_ib_post_rdma_write_immed(rig->a.ep, 1, &word, dt_cookie(9), &remote, 7, 0));
	(void)dt_event(rig->a.request);
	(void)dt_event(rig->b.recv);
	dt_ok(dat_ib_post_fetch_and_add(rig->a.ep, 1, &word, dt_cookie(10), &remote, 0));
	(void)dt_event(rig->a.request);
	for (int i = 0; i < 2; i++) {
		dt_ok(dat_ib_post_cmp_and_swap(rig->a.ep, 1, 2, &word, dt_cookie(11), &remote, 0));
		(void)dt_event(rig->a.request);
	}
	dt_buf_free(&target);
}

/* D2-CNT-06 D2-CNT-09: what was refused and what was flushed are not confused with it */
static void ep_counters__each_operation__counted_by_kind(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	uint64_t a[DCNT_EP_ALL_COUNTERS] = {
		[DCNT_EP_CONNECT] = 1,		[DCNT_EP_POST_SEND] = 2,
		[DCNT_EP_POST_SEND_DATA] = 100, [DCNT_EP_POST_WRITE] = 2,
		[DCNT_EP_POST_WRITE_DATA] = 46, [DCNT_EP_POST_READ] = 1,
		[DCNT_EP_POST_READ_DATA] = 40};
	uint64_t b[DCNT_EP_ALL_COUNTERS] = {[DCNT_EP_POST_RECV] = 2,
					    [DCNT_EP_POST_RECV_DATA] = 300,
					    [DCNT_EP_RECV] = 2,
					    [DCNT_EP_RECV_DATA] = 100};

	rig_link(rig);
	post_each(rig);
	dt_fails(dat_ep_post_send(rig->a.ep, -1, &seg, dt_cookie(1), 0), DAT_INVALID_PARAMETER);
	expect_counters(rig->a.ep, a, DCNT_EP_ALL_COUNTERS);
	expect_counters(rig->b.ep, b, DCNT_EP_ALL_COUNTERS);
	if (!dt_is_iwarp()) {
		post_extended(rig);
		a[DCNT_EP_POST_WRITE_IMM] = 1;
		a[DCNT_EP_POST_WRITE_IMM_DATA] = 8;
		a[DCNT_EP_POST_FETCH_ADD] = 1;
		a[DCNT_EP_POST_CMP_SWAP] = 2;
		b[DCNT_EP_POST_RECV]++;
		b[DCNT_EP_POST_RECV_DATA] += 16;
		b[DCNT_EP_RECV_RDMA_IMM] = 1;
		b[DCNT_EP_RECV_RDMA_IMM_DATA] = 8;
	}
	post_recv(&rig->b, dt_seg(&rig->y, 0, 50), 20);
	b[DCNT_EP_POST_RECV]++;
	b[DCNT_EP_POST_RECV_DATA] += 50;
	rig_disconnect(rig, DAT_CLOSE_ABRUPT_FLAG);
	expect_recv_flushed(&rig->b, 20);
	a[DCNT_EP_DISCONNECT] = 1;
	expect_counters(rig->a.ep, a, DCNT_EP_ALL_COUNTERS);
	expect_counters(rig->b.ep, b, DCNT_EP_ALL_COUNTERS);
}

/* D2-CNT-06: of Receives from an SRQ the endpoint posts none */
static void ep_counters__receives_of_an_srq__counted(void **state)
{
	const uint64_t expected[DCNT_EP_ALL_COUNTERS] = {
		[DCNT_EP_RECV] = 3, [DCNT_EP_RECV_DATA] = 24};
	struct bench *bench = *state;

	bench_add(bench, 1);
	bench_give_many(bench, 0, 4);
	for (uint64_t i = 0; i < 3; i++) {
		bench_send(bench, 0, i);
		(void)bench_receive(bench, 0, i);
	}
	expect_counters(bench->to[0].ep, expected, DCNT_EP_ALL_COUNTERS);
}

struct sender {
	struct rig *rig;
	_Atomic int is_done;
};

static void *send_all(void *arg)
{
	struct sender *sender = arg;
	struct rig *rig = sender->rig;

	for (uint64_t i = 0; i < SENDS; i++) {
		post_recv(&rig->b, dt_seg(&rig->y, 0, 8), i);
		post_send(&rig->a, dt_seg(&rig->x, 0, 8), i, 0);
		expect_received(&rig->b, i, 8);
		expect_sent(&rig->a, i, 8);
	}
	sender->is_done = 1;
	return NULL;
}

/* D2-CNT-05 D2-CNT-11 */
static void reset__while_another_thread_posts__the_sum_is_exact(void **state)
{
	struct rig *rig = *state;
	struct sender sender = {.rig = rig};
	uint64_t sent = 0, bytes = 0, received = 0, values[DCNT_EP_ALL_COUNTERS];
	pthread_t thread;
	bool is_last;

	rig_link(rig);
	assert_int_equal(pthread_create(&thread, NULL, send_all, &sender), 0);
	do {
		is_last = sender.is_done;
		sent += reset(rig->a.ep, DCNT_EP_POST_SEND);
		dt_ok(dat_ib_query_counters(rig->a.ep, DCNT_EP_ALL_COUNTERS, values, 1));
		sent += values[DCNT_EP_POST_SEND];
		bytes += values[DCNT_EP_POST_SEND_DATA];
		received += reset(rig->b.ep, DCNT_EP_RECV);
		sched_yield();
	} while (!is_last);
	pthread_join(thread, NULL);
	assert_int_equal(sent, SENDS);
	assert_int_equal(bytes, SENDS * 8);
	assert_int_equal(received, SENDS);
	assert_int_equal(counter(rig->a.ep, DCNT_EP_POST_SEND), 0);
}

/* --- EVDs --- */

/* D2-CNT-07 */
static void evd_counters__waits_and_dequeues__counted(void **state)
{
	struct rig *rig = *state;
	uint64_t expected[DCNT_EVD_ALL_COUNTERS] = {0};
	struct dto_waiter waiter;
	DAT_EVD_HANDLE evd;
	DAT_EVENT event;
	DAT_COUNT more;

	rig_link(rig);
	for (int i = 0; i < 3; i++)
		dt_returns(dat_evd_dequeue(rig->b.recv, &event), DAT_QUEUE_EMPTY);
	dt_fails(dat_evd_wait(rig->b.recv, 0, 0, &event, &more), DAT_INVALID_PARAMETER);
	dt_fails(dat_evd_dequeue(rig->b.recv, NULL), DAT_INVALID_PARAMETER);
	expected[DCNT_EVD_DEQUEUE] = 3;
	expected[DCNT_EVD_DEQUEUE_NOT_FOUND] = 3;
	expect_counters(rig->b.recv, expected, DCNT_EVD_ALL_COUNTERS);

	post_recv(&rig->b, dt_seg(&rig->y, 0, 8), 1);
	dto_waiter_start(&waiter, rig->b.recv, 1);
	post_send(&rig->a, dt_seg(&rig->x, 0, 8), 2, 0);
	dto_waiter_wakes(&waiter, 1, 0);
	expect_sent(&rig->a, 2, 8);
	assert_int_equal(counter(rig->b.recv, DCNT_EVD_WAIT), 1);
	assert_int_equal(counter(rig->b.recv, DCNT_EVD_WAIT_BLOCKED), 1);
	assert_int_equal(counter(rig->b.recv, DCNT_EVD_WAIT_NOTIFY), 1);
	assert_int_equal(counter(rig->b.recv, DCNT_EVD_DEQUEUE_FOUND), 0);

	dt_fails(dat_evd_wait(rig->b.recv, 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	assert_int_equal(counter(rig->b.recv, DCNT_EVD_WAIT), 2);
	assert_int_equal(counter(rig->b.recv, DCNT_EVD_WAIT_BLOCKED), 2);
	assert_int_equal(reset(rig->b.recv, DCNT_EVD_WAIT), 2);
	evd = dt_evd_create(&rig->ia, 1, DAT_EVD_SOFTWARE_FLAG);
	event = (DAT_EVENT){.event_number = DAT_SOFTWARE_EVENT};
	dt_ok(dat_evd_post_se(evd, &event));
	dt_ok(dat_evd_wait(evd, DT_WAIT_US, 1, &event, &more));
	assert_int_equal(counter(evd, DCNT_EVD_WAIT), 1);
	assert_int_equal(counter(evd, DCNT_EVD_WAIT_BLOCKED), 0);
	dt_ok(dat_evd_free(evd));
}

/* D2-CNT-07: those that a dequeue finds in the queue, and those that it takes from the transport */
static void evd_counters__events_found__counted(void **state)
{
	struct rig *rig = *state;
	uint64_t found = 0, empty = 0;
	DAT_EVENT event;

	rig_link(rig);
	while (found < 100) {
		if (found % 5 == 0) {
			for (uint64_t i = 0; i < 5; i++)
				post_recv(&rig->b, dt_seg(&rig->y, 0, 8), i);
			for (uint64_t i = 0; i < 5; i++)
				post_send(&rig->a, dt_seg(&rig->x, 0, 8), i,
					  DAT_COMPLETION_SUPPRESS_FLAG);
		}
		while (dat_evd_dequeue(rig->b.recv, &event) != DAT_SUCCESS)
			empty++;
		found++;
	}
	assert_int_equal(counter(rig->b.recv, DCNT_EVD_DEQUEUE_FOUND), 100);
	assert_int_equal(counter(rig->b.recv, DCNT_EVD_DEQUEUE_NOT_FOUND), empty);
	assert_int_equal(counter(rig->b.recv, DCNT_EVD_DEQUEUE), 100 + empty);
	assert_int_equal(reset(rig->b.recv, DCNT_EVD_DEQUEUE), 100 + empty);
	dt_ok(dat_evd_resize(rig->b.recv, 200)); /* the queue begins anew */
	assert_int_equal(counter(rig->b.recv, DCNT_EVD_DEQUEUE), 0);
	assert_int_equal(counter(rig->b.recv, DCNT_EVD_DEQUEUE_FOUND), 100);
}

/* --- adapters --- */

/* D2-CNT-08: objects */
static void ia_counters__objects__created_and_freed(void **state)
{
	struct dt_ia *ia = *state;
	uint64_t expected[DCNT_IA_ALL_COUNTERS] = {
		[DCNT_IA_PZ_CREATE] = 1,  [DCNT_IA_EVD_CREATE] = 2, [DCNT_IA_PSP_CREATE_ANY] = 1,
		[DCNT_IA_PSP_CREATE] = 2, [DCNT_IA_LMR_CREATE] = 1, [DCNT_IA_RMR_CREATE] = 2};
	struct dt_listener listener;
	DAT_PSP_HANDLE psp, same, any;
	DAT_RSP_HANDLE rsp;
	DAT_CONN_QUAL qual, any_qual;
	DAT_RMR_HANDLE rmr[2];
	struct dt_buf buf;
	struct dt_ep ep;

	dt_listen(ia, &listener);
	qual = dt_unused_qual();
	dt_ok(dat_psp_create(ia->ia, qual, listener.evd, DAT_PSP_CONSUMER_FLAG, &psp));
	dt_fails(dat_psp_create(ia->ia, qual, listener.evd, DAT_PSP_CONSUMER_FLAG, &same),
		 DAT_CONN_QUAL_IN_USE);
	dt_ok(dat_psp_create_any(ia->ia, &any_qual, listener.evd, DAT_PSP_CONSUMER_FLAG, &any));
	dt_buf_create(ia, ia->pz, &buf, 64, DAT_MEM_PRIV_ALL_FLAG);
	for (int i = 0; i < 2; i++)
		dt_ok(dat_rmr_create(ia->pz, &rmr[i]));
	expect_counters(ia->ia, expected, DCNT_IA_ALL_COUNTERS);
	dt_ok(dat_rmr_free(rmr[0]));
	dt_ok(dat_rmr_free(rmr[1]));
	dt_buf_free(&buf);
	dt_ok(dat_psp_free(psp));
	dt_ok(dat_psp_free(any));
	dt_ep_create(ia, ia->pz, NULL, &ep);
	dt_ok(dat_rsp_create(ia->ia, dt_unused_qual(), ep.ep, listener.evd, &rsp));
	dt_ok(dat_rsp_free(rsp));
	dt_ep_free(&ep);
	dt_unlisten(&listener);
	expected[DCNT_IA_RMR_FREE] = 2;
	expected[DCNT_IA_LMR_FREE] = 1;
	expected[DCNT_IA_PSP_FREE] = 3;
	expected[DCNT_IA_EVD_CREATE] += 3;
	expected[DCNT_IA_EVD_FREE] = 4;
	expected[DCNT_IA_EP_CREATE] = 1;
	expected[DCNT_IA_EP_FREE] = 1;
	expected[DCNT_IA_RSP_CREATE] = 1;
	expected[DCNT_IA_RSP_FREE] = 1;
	expect_counters(ia->ia, expected, DCNT_IA_ALL_COUNTERS);
}

static void connect_to(const struct dt_ia *to, DAT_EP_HANDLE ep, DAT_CONN_QUAL qual)
{
	dt_ok(dat_ep_connect(ep, to->attr.ia_address_ptr, qual, DT_WAIT_US, 0, NULL,
			     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

/* D2-CNT-08 D2-CNT-10: connections between two instances */
static void ia_counters__connections__counted_where_they_were_made(void **state)
{
	struct dt_ia *active = *state, passive;
	struct dt_listener listener;
	struct dt_ep a, b;

	dt_ia_open(&passive);
	dt_listen(&passive, &listener);
	dt_ep_create(active, active->pz, NULL, &a);
	dt_ep_create(&passive, passive.pz, NULL, &b);
	connect_to(&passive, a.ep, listener.qual);
	dt_ok(dat_cr_reject(dt_request(&listener)));
	dt_expect_conn(a.conn, a.ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
	dt_ok(dat_ep_reset(a.ep));
	connect_to(&passive, a.ep, listener.qual);
	dt_ok(dat_cr_accept(dt_request(&listener), b.ep, 0, NULL));
	dt_expect_conn(a.conn, a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_expect_conn(b.conn, b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	assert_int_equal(counter(a.ep, DCNT_EP_CONNECT), 2);
	assert_int_equal(counter(active->ia, DCNT_IA_CM_ACTIVE_EST), 1);
	assert_int_equal(counter(active->ia, DCNT_IA_CM_PASSIVE_EST), 0);
	assert_int_equal(counter(active->ia, DCNT_IA_SP_CR), 0);
	assert_int_equal(counter(passive.ia, DCNT_IA_CM_ACTIVE_EST), 0);
	assert_int_equal(counter(passive.ia, DCNT_IA_CM_PASSIVE_EST), 1);
	assert_int_equal(counter(passive.ia, DCNT_IA_SP_CR), 2);
	assert_int_equal(counter(passive.ia, DCNT_IA_SP_CR_ACCEPTED), 1);
	assert_int_equal(counter(passive.ia, DCNT_IA_SP_CR_REJECTED), 1);
	assert_int_equal(reset(passive.ia, DCNT_IA_PZ_CREATE), 1);
	assert_int_equal(counter(passive.ia, DCNT_IA_PZ_CREATE), 0);
	assert_int_equal(counter(active->ia, DCNT_IA_PZ_CREATE), 1);
	dt_ok(dat_ep_disconnect(a.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(b.conn, b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ep_free(&a);
	dt_ep_free(&b);
	dt_unlisten(&listener);
	assert_int_equal(counter(passive.ia, DCNT_IA_PZ_CREATE), 0);
	dt_ia_close(&passive);
}

/* D2-CNT-08: a low watermark, which is an asynchronous event */
static void ia_counters__asynchronous_event__counted(void **state)
{
	struct bench *bench = *state;

	bench->has_async = true;
	assert_int_equal(counter(bench->ia.ia, DCNT_IA_ASYNC_ERROR), 0);
	dt_ok(dat_srq_set_lw(bench->srq, 1));
	(void)dt_event(bench->ia.async);
	assert_int_equal(counter(bench->ia.ia, DCNT_IA_ASYNC_ERROR), 1);
	assert_int_equal(counter(bench->ia.ia, DCNT_IA_SRQ_CREATE), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(query_counters__each_kind__its_own_set_and_no_more),
		dt_ia_test(counters__handle_of_another_kind__refused),
		dt_ia_test(start_and_stop__each_type__accepted_or_refused),
		dt_ia_test(named_attributes__counters__true),
		dt_ia_test(print_counters__some_are_0__the_others_printed),
		rig_test_bare(ep_counters__each_operation__counted_by_kind),
		bench_test(ep_counters__receives_of_an_srq__counted),
		rig_test_bare(reset__while_another_thread_posts__the_sum_is_exact),
		rig_test_bare(evd_counters__waits_and_dequeues__counted),
		rig_test_bare(evd_counters__events_found__counted),
		dt_ia_test(ia_counters__objects__created_and_freed),
		dt_ia_test(ia_counters__connections__counted_where_they_were_made),
		bench_test(ia_counters__asynchronous_event__counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
