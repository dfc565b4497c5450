// SPDX-License-Identifier: BSD-2-Clause
/* Helpers of the tests of shared receive queues; see the header. */
#include "srq_util.h"

#include "quiet.h"

#define LINE_US 20000u /* so long no thread runs when all messages wait */

/* --- queues --- */

DAT_SRQ_HANDLE srq_make(struct dt_ia *ia, DAT_COUNT dtos, DAT_COUNT iov)
{
	DAT_SRQ_ATTR attr = {dtos, iov, DAT_SRQ_LW_DEFAULT};
	DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;

	dt_ok(dat_srq_create(ia->ia, ia->pz, &attr, &srq));
	return srq;
}

DAT_SRQ_PARAM srq_query(DAT_SRQ_HANDLE srq)
{
	DAT_SRQ_PARAM param;

	memset(&param, 0xa5, sizeof(param));
	dt_ok(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	return param;
}

void srq_counts(DAT_SRQ_HANDLE srq, DAT_COUNT available, DAT_COUNT outstanding)
{
	const DAT_SRQ_PARAM param = srq_query(srq);

	if (param.available_dto_count != available || param.outstanding_dto_count != outstanding)
		print_error("available %d, outstanding %d\n", (int)param.available_dto_count,
			    (int)param.outstanding_dto_count);
	assert_int_equal(param.available_dto_count, available);
	assert_int_equal(param.outstanding_dto_count, outstanding);
}

struct srq_goal {
	DAT_SRQ_HANDLE srq;
	DAT_COUNT count;
};

static bool srq_is_down_to(void *arg)
{
	const struct srq_goal *goal = arg;

	return srq_query(goal->srq).available_dto_count <= goal->count;
}

void srq_until(DAT_SRQ_HANDLE srq, DAT_COUNT available)
{
	struct srq_goal goal = {srq, available};

	dt_until(srq_is_down_to, &goal);
}

static bool srq_has_outstanding(void *arg)
{
	const struct srq_goal *goal = arg;

	return srq_query(goal->srq).outstanding_dto_count == goal->count;
}

void srq_until_outstanding(DAT_SRQ_HANDLE srq, DAT_COUNT outstanding)
{
	struct srq_goal goal = {srq, outstanding};

	dt_until(srq_has_outstanding, &goal);
}

DAT_RETURN srq_post(DAT_SRQ_HANDLE srq, DAT_LMR_TRIPLET seg, uint64_t cookie)
{
	return dat_srq_post_recv(srq, 1, &seg, dt_cookie(cookie));
}

DAT_RETURN srq_post_empty(DAT_SRQ_HANDLE srq, uint64_t cookie)
{
	return dat_srq_post_recv(srq, 0, NULL, dt_cookie(cookie));
}

/* --- endpoints --- */

bool srq_shows_held(const struct dt_ia *ia)
{
	return (ia->provider.srq_watermarks_supported & 0x110) == 0x110;
}

bool srq_takes_other_zones(const struct dt_ia *ia)
{
	return ia->provider.srq_ep_pz_difference_supported == DAT_TRUE;
}

void srq_expect_held(const struct dt_ia *ia, DAT_EP_HANDLE ep, DAT_COUNT count)
{
	const DAT_COUNT expected = srq_shows_held(ia) ? count : DAT_VALUE_UNKNOWN;
	DAT_COUNT held = -7, span = -7;

	dt_ok(dat_ep_recv_query(ep, &held, &span));
	assert_int_equal(held, expected);
	assert_int_equal(span, expected);
}

void srq_refuses_zone(struct dt_ia *ia, DAT_PZ_HANDLE pz, DAT_SRQ_HANDLE srq,
		      const DAT_EP_ATTR *attr)
{
	const DAT_EVD_HANDLE dto = dt_evd_create(ia, 8, DAT_EVD_DTO_FLAG);
	const DAT_EVD_HANDLE conn = dt_evd_create(ia, 8, DAT_EVD_CONNECTION_FLAG);
	DAT_EP_HANDLE ep;

	dt_fails_with(dat_ep_create_with_srq(ia->ia, pz, dto, dto, conn, srq, attr, &ep),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	dt_ok(dat_evd_free(dto));
	dt_ok(dat_evd_free(conn));
}

void srq_ep_make(struct dt_ia *ia, DAT_PZ_HANDLE pz, DAT_SRQ_HANDLE srq, const DAT_EP_ATTR *attr,
		 struct dt_ep *ep_out)
{
	ep_out->recv = dt_evd_create(ia, 512, DAT_EVD_DTO_FLAG);
	ep_out->request = dt_evd_create(ia, 512, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG);
	ep_out->conn = dt_evd_create(ia, 16, DAT_EVD_CONNECTION_FLAG);
	dt_ok(dat_ep_create_with_srq(ia->ia, pz, ep_out->recv, ep_out->request, ep_out->conn, srq,
				     attr, &ep_out->ep));
}

void srq_ep_attr(struct dt_ia *ia, DAT_EP_ATTR *attr_out)
{
	dt_ep_attr(ia, attr_out);
	attr_out->max_recv_dtos = DAT_HW_DEFAULT;
	attr_out->srq_soft_hw = DAT_HW_DEFAULT;
}

/* --- the bench --- */

void bench_begin(struct bench *bench, DAT_COUNT dtos)
{
	memset(bench, 0, sizeof(*bench));
	quiet_begin();
	dt_ia_open(&bench->ia);
	bench->srq = srq_make(&bench->ia, dtos, 4);
	srq_ep_attr(&bench->ia, &bench->attr);
	dt_ep_attr(&bench->ia, &bench->from_attr);
	bench->from_attr.max_request_dtos = 256;
	dt_buf_create(&bench->ia, bench->ia.pz, &bench->x, RIG_LEN, DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_create(&bench->ia, bench->ia.pz, &bench->y, RIG_LEN, DAT_MEM_PRIV_ALL_FLAG);
	memset(bench->y.p, RIG_FILL, RIG_LEN);
}

void bench_add(struct bench *bench, unsigned pairs)
{
	for (; pairs; pairs--) {
		struct dt_ep *from = &bench->from[bench->pairs], *to = &bench->to[bench->pairs];

		assert_true(bench->pairs < SRQ_PAIRS);
		dt_ep_create(&bench->ia, bench->ia.pz, &bench->from_attr, from);
		srq_ep_make(&bench->ia, bench->ia.pz, bench->srq, &bench->attr, to);
		dt_ep_link(&bench->ia, from, to);
		bench->pairs++;
	}
}

static void bench_end(struct bench *bench)
{
	if (!bench->has_async)
		dt_no_event(bench->ia.async);
	dt_ia_abort(&bench->ia);
	dt_mem_free(bench->x.p, bench->x.mapped);
	dt_mem_free(bench->y.p, bench->y.mapped);
}

static struct bench bench_of_test;

int bench_setup(void **state)
{
	bench_begin(&bench_of_test, 16);
	*state = &bench_of_test;
	return 0;
}

int bench_teardown(void **state)
{
	bench_end(*state);
	return 0;
}

/* --- messages --- */

DAT_LMR_TRIPLET bench_slot(struct bench *bench, uint64_t number)
{
	return dt_seg(&bench->y, (size_t)(number % SRQ_SLOTS) * SRQ_SLOT, SRQ_SLOT);
}

void bench_give(struct bench *bench, uint64_t number)
{
	dt_ok(srq_post(bench->srq, bench_slot(bench, number), number));
}

void bench_give_many(struct bench *bench, uint64_t first, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		bench_give(bench, first + i);
}

void bench_send(struct bench *bench, unsigned pair, uint64_t number)
{
	const size_t at = (bench->sent++ % SRQ_SLOTS) * SRQ_SLOT;

	memcpy(bench->x.p + at, &number, sizeof(number));
	post_send(&bench->from[pair], dt_seg(&bench->x, at, sizeof(number)), number,
		  DAT_COMPLETION_SUPPRESS_FLAG);
}

void bench_await_line(struct bench *bench)
{
	quiet_await(LINE_US);
	for (unsigned i = 0; i < bench->pairs; i++)
		dt_no_event(bench->to[i].recv);
}

uint64_t bench_read(struct bench *bench, uint64_t cookie)
{
	uint64_t number;

	memcpy(&number, bench->y.p + (cookie % SRQ_SLOTS) * SRQ_SLOT, sizeof(number));
	return number;
}

uint64_t bench_check_event(const DAT_EVENT *event, DAT_EP_HANDLE ep)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *data = &event->event_data.dto_completion_event_data;

	assert_int_equal(event->event_number, DAT_DTO_COMPLETION_EVENT);
	assert_ptr_equal(data->ep_handle, ep);
	assert_int_equal(data->status, DAT_DTO_SUCCESS);
	assert_true(data->transfered_length == sizeof(uint64_t));
	return data->user_cookie.as_64;
}

uint64_t bench_receive(struct bench *bench, unsigned pair, uint64_t number)
{
	const DAT_EVENT event = dt_event(bench->to[pair].recv);
	const uint64_t cookie = bench_check_event(&event, bench->to[pair].ep);

	assert_true(bench_read(bench, cookie) == number);
	return cookie;
}

void bench_works(struct bench *bench)
{
	for (unsigned i = 0; i < bench->pairs; i++) {
		if (dt_ep_state(bench->to[i].ep) != DAT_EP_STATE_CONNECTED)
			continue;
		bench_give(bench, 900);
		bench_send(bench, i, 0xc0ffee00u + i);
		bench_receive(bench, i, 0xc0ffee00u + i);
	}
}

void bench_cut(struct bench *bench, unsigned pair)
{
	dt_ok(dat_ep_disconnect(bench->from[pair].ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_ended(&bench->from[pair], DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_ended(&bench->to[pair], DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* --- a message on its way --- */

void catch_begin(struct catch *c, struct bench *bench, unsigned pair)
{
	const DAT_VLEN limit = bench->ia.attr.max_message_size;

	*c = (struct catch){
		.bench = bench, .pair = pair, .len = limit < CATCH_LEN ? (size_t)limit : CATCH_LEN};
	dt_buf_create(&bench->ia, bench->ia.pz, &c->from, c->len, DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_create(&bench->ia, bench->ia.pz, &c->to, c->len, DAT_MEM_PRIV_ALL_FLAG);
}

void catch_end(struct catch *c)
{
	dt_buf_free(&c->from);
	dt_buf_free(&c->to);
}

static bool catch_is_taken(void *arg)
{
	struct catch *c = arg;

	return srq_query(c->bench->srq).available_dto_count == 0;
}

static bool catch_has_begun(void *arg)
{
	struct catch *c = arg;

	return *(volatile unsigned char *)c->to.p || catch_is_taken(c);
}

bool catch_try(struct catch *c)
{
	const struct dt_ia *ia = &c->bench->ia;
	DAT_COUNT held = -7, span = -7;

	c->from.p[0] = 1;
	c->to.p[0] = 0;
	dt_ok(srq_post(c->bench->srq, dt_seg(&c->to, 0, c->len), 77));
	post_send(&c->bench->from[c->pair], dt_seg(&c->from, 0, c->len), 78, 0);
	if (!srq_shows_held(ia)) {
		dt_until(catch_has_begun, c);
		srq_expect_held(ia, c->bench->to[c->pair].ep, 0);
		return !catch_is_taken(c); /* the device reports it when it is complete */
	}
	dt_until(catch_is_taken, c);
	dt_ok(dat_ep_recv_query(c->bench->to[c->pair].ep, &held, &span));
	assert_true(held == 0 || held == 1);
	assert_int_equal(span, held);
	return held == 1;
}

void catch_missed(struct catch *c)
{
	expect_received(&c->bench->to[c->pair], 77, c->len);
	expect_sent(&c->bench->from[c->pair], 78, c->len);
}
