// SPDX-License-Identifier: BSD-2-Clause
/* Helpers of the tests of data transfer; see the header. */
#include "dto_util.h"

#include <sys/syscall.h>
#include <unistd.h>

/* --- the rig --- */

struct rig rig_of_test;

void rig_begin(struct rig *rig)
{
	memset(rig, 0, sizeof(*rig));
	dt_ia_open(&rig->ia);
	dt_ep_attr(&rig->ia, &rig->attr_a);
	dt_ep_attr(&rig->ia, &rig->attr_b);
	dt_buf_create(&rig->ia, rig->ia.pz, &rig->x, RIG_LEN, DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_create(&rig->ia, rig->ia.pz, &rig->y, RIG_LEN, DAT_MEM_PRIV_ALL_FLAG);
	dt_fill(rig->x.p, RIG_LEN, RIG_SEED);
	memset(rig->y.p, RIG_FILL, RIG_LEN);
}

void rig_link(struct rig *rig)
{
	dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_a, &rig->a);
	dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_b, &rig->b);
	dt_ep_link(&rig->ia, &rig->a, &rig->b);
}

void rig_end(struct rig *rig)
{
	dt_no_event(rig->ia.async);
	dt_ia_abort(&rig->ia);
	dt_mem_free(rig->x.p, rig->x.mapped);
	dt_mem_free(rig->y.p, rig->y.mapped);
}

int rig_setup(void **state)
{
	rig_begin(&rig_of_test);
	rig_link(&rig_of_test);
	dt_map(&rig_of_test.a, dt_seg(&rig_of_test.x, 0, 1), dt_rseg(&rig_of_test.y, 0, 1));
	*state = &rig_of_test;
	return 0;
}

int rig_setup_bare(void **state)
{
	rig_begin(&rig_of_test);
	*state = &rig_of_test;
	return 0;
}

int rig_teardown(void **state)
{
	rig_end(*state);
	return 0;
}

/* --- posts that must be accepted --- */

void post_send(struct dt_ep *ep, DAT_LMR_TRIPLET seg, uint64_t cookie, DAT_COMPLETION_FLAGS flags)
{
	dt_ok(dat_ep_post_send(ep->ep, 1, &seg, dt_cookie(cookie), flags));
}

void post_recv(struct dt_ep *ep, DAT_LMR_TRIPLET seg, uint64_t cookie)
{
	dt_ok(dat_ep_post_recv(ep->ep, 1, &seg, dt_cookie(cookie), DAT_COMPLETION_DEFAULT_FLAG));
}

void post_write(struct dt_ep *ep, DAT_LMR_TRIPLET seg, DAT_RMR_TRIPLET remote, uint64_t cookie,
		DAT_COMPLETION_FLAGS flags)
{
	dt_ok(dat_ep_post_rdma_write(ep->ep, 1, &seg, dt_cookie(cookie), &remote, flags));
}

void post_read(struct dt_ep *ep, DAT_LMR_TRIPLET seg, DAT_RMR_TRIPLET remote, uint64_t cookie,
	       DAT_COMPLETION_FLAGS flags)
{
	dt_ok(dat_ep_post_rdma_read(ep->ep, 1, &seg, dt_cookie(cookie), &remote, flags));
}

/* --- expected completions --- */

void expect_sent(struct dt_ep *ep, uint64_t cookie, DAT_VLEN len)
{
	dt_expect_dto(ep->request, ep->ep, cookie, DAT_DTO_SUCCESS, len);
}

void expect_received(struct dt_ep *ep, uint64_t cookie, DAT_VLEN len)
{
	dt_expect_dto(ep->recv, ep->ep, cookie, DAT_DTO_SUCCESS, len);
}

void expect_request(struct dt_ep *ep, uint64_t cookie, DAT_DTO_COMPLETION_STATUS status)
{
	dt_expect_dto(ep->request, ep->ep, cookie, status, DT_ANY_LEN);
}

void expect_recv_flushed(struct dt_ep *ep, uint64_t cookie)
{
	dt_expect_dto(ep->recv, ep->ep, cookie, DAT_DTO_ERR_FLUSHED, DT_ANY_LEN);
}

void expect_ended(struct dt_ep *ep, DAT_EVENT_NUMBER number)
{
	dt_expect_conn(ep->conn, ep->ep, number);
	assert_int_equal(dt_ep_state(ep->ep), DAT_EP_STATE_DISCONNECTED);
	dt_no_event(ep->conn);
}

void expect_broken(struct rig *rig)
{
	expect_ended(&rig->a, DAT_CONNECTION_EVENT_BROKEN);
	expect_ended(&rig->b, DAT_CONNECTION_EVENT_BROKEN);
}

void expect_quiet(struct dt_ep *ep)
{
	dt_no_event(ep->recv);
	dt_no_event(ep->request);
	dt_no_event(ep->conn);
}

void rig_disconnect(struct rig *rig, DAT_CLOSE_FLAGS flags)
{
	dt_ok(dat_ep_disconnect(rig->a.ep, flags));
	expect_ended(&rig->a, DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_ended(&rig->b, DAT_CONNECTION_EVENT_DISCONNECTED);
}

void rig_works(struct rig *rig)
{
	const size_t at = RIG_LEN - 64;
	unsigned char before[24];

	memcpy(before, rig->x.p + at, sizeof(before));
	post_recv(&rig->b, dt_seg(&rig->y, at, 32), 0xB0);
	post_send(&rig->a, dt_seg(&rig->x, 0, 32), 0xA0, DAT_COMPLETION_DEFAULT_FLAG);
	expect_sent(&rig->a, 0xA0, 32);
	expect_received(&rig->b, 0xB0, 32);
	post_write(&rig->a, dt_seg(&rig->x, 0, 24), dt_rseg(&rig->y, at, 24), 0xA1,
		   DAT_COMPLETION_DEFAULT_FLAG);
	post_read(&rig->a, dt_seg(&rig->x, at, 24), dt_rseg(&rig->y, at, 24), 0xA2,
		  DAT_COMPLETION_DEFAULT_FLAG);
	expect_sent(&rig->a, 0xA1, 24);
	expect_sent(&rig->a, 0xA2, 24);
	assert_memory_equal(rig->x.p + at, rig->x.p, 24);
	assert_memory_equal(rig->y.p + at, rig->x.p, 32);
	expect_quiet(&rig->a);
	expect_quiet(&rig->b);
	memset(rig->y.p + at, RIG_FILL, 64);
	memcpy(rig->x.p + at, before, sizeof(before));
}

DT_UNORDERED bool dto_is_written(void *byte)
{
	return *(volatile unsigned char *)byte != RIG_FILL;
}

/* --- any kind of DTO --- */

static const char *dto_name(enum dto_kind kind)
{
	static const char *const names[] = {"send", "recv", "rdma_read", "rdma_write"};

	return names[kind];
}

bool dto_is_source(enum dto_kind kind)
{
	return kind == DTO_SEND || kind == DTO_WRITE;
}

DAT_EVD_HANDLE dto_evd(const struct dt_ep *ep, enum dto_kind kind)
{
	return kind == DTO_RECV ? ep->recv : ep->request;
}

DAT_RETURN dto_post(enum dto_kind kind, DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
		    uint64_t cookie, const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags)
{
	const DAT_DTO_COOKIE c = dt_cookie(cookie);

	switch (kind) {
	case DTO_SEND:
		return dat_ep_post_send(ep, n, iov, c, flags);
	case DTO_RECV:
		return dat_ep_post_recv(ep, n, iov, c, flags);
	case DTO_READ:
		return dat_ep_post_rdma_read(ep, n, iov, c, remote, flags);
	case DTO_WRITE:
	default:
		return dat_ep_post_rdma_write(ep, n, iov, c, remote, flags);
	}
}

DAT_RETURN dto_post_byte(struct rig *rig, enum dto_kind kind, uint64_t cookie,
			 DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 1);
	const DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 1);

	return dto_post(kind, rig->a.ep, 1, &seg, cookie, &remote, flags);
}

DAT_RETURN dto_bad_flags(enum dto_kind kind)
{
	const bool is_rdma = kind == DTO_READ || kind == DTO_WRITE;

	return DT_ERROR(DAT_INVALID_PARAMETER, is_rdma ? DAT_INVALID_ARG6 : DAT_INVALID_ARG5);
}

DAT_RETURN dto_bad_zone(enum dto_kind kind)
{
	return DT_ERROR(DAT_PROTECTION_VIOLATION,
			dto_is_source(kind) ? DAT_PROTECTION_READ : DAT_PROTECTION_WRITE);
}

DAT_RETURN dto_bad_privilege(enum dto_kind kind)
{
	return DT_ERROR(DAT_PRIVILEGES_VIOLATION,
			dto_is_source(kind) ? DAT_PRIVILEGES_READ : DAT_PRIVILEGES_WRITE);
}

void dto_refused(struct rig *rig, enum dto_kind kind, DAT_RETURN code, DAT_COUNT n,
		 DAT_LMR_TRIPLET *iov, const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags)
{
	const DAT_EP_STATE before = dt_ep_state(rig->a.ep);
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_STATE state;
	const DAT_RETURN ret = dto_post(kind, rig->a.ep, n, iov, 0xBAD, remote, flags);

	if (ret != code)
		print_error("post of a %s:\n", dto_name(kind));
	dt_returns(ret, code);
	dt_no_event(rig->a.recv);
	dt_no_event(rig->a.request);
	dt_ok(dat_ep_get_status(rig->a.ep, &state, &recv_idle, &request_idle));
	assert_int_equal(state, before);
	assert_int_equal(recv_idle, DAT_TRUE);
	assert_int_equal(request_idle, DAT_TRUE);
}

/* --- a thread that waits on an EVD --- */

static void *dto_waiter_run(void *arg)
{
	struct dto_waiter *waiter = arg;

	waiter->tid = (int)syscall(SYS_gettid);
	waiter->ret = dat_evd_wait(waiter->evd, waiter->timeout_us, waiter->threshold,
				   &waiter->event, &waiter->nmore);
	waiter->has_returned = 1;
	return NULL;
}

/* A blocked waiter owns the EVD. */
static bool dto_waiter_is_blocked(void *arg)
{
	struct dto_waiter *waiter = arg;
	DAT_EVENT event;

	return waiter->has_returned ||
	       DAT_GET_TYPE(dat_evd_dequeue(waiter->evd, &event)) == DAT_INVALID_STATE;
}

void dto_waiter_start(struct dto_waiter *waiter, DAT_EVD_HANDLE evd, DAT_COUNT threshold)
{
	memset(waiter, 0, sizeof(*waiter));
	waiter->evd = evd;
	waiter->threshold = threshold;
	waiter->timeout_us = DT_WAIT_US;
	assert_int_equal(pthread_create(&waiter->thread, NULL, dto_waiter_run, waiter), 0);
	dt_until(dto_waiter_is_blocked, waiter);
	assert_int_equal(waiter->has_returned, 0);
}

static bool dto_waiter_is_asleep(void *arg)
{
	struct dto_waiter *waiter = arg;

	return dt_thread_is_blocked(waiter->tid);
}

void dto_waiter_falls_asleep(struct dto_waiter *waiter)
{
	dt_until(dto_waiter_is_asleep, waiter);
	assert_int_equal(waiter->has_returned, 0);
}

void dto_waiter_sleeps(struct dto_waiter *waiter)
{
	const uint64_t end = dt_now_us() + DT_QUIET_US;

	do {
		assert_int_equal(waiter->has_returned, 0);
		sched_yield();
	} while (dt_now_us() < end);
}

void dto_waiter_wakes(struct dto_waiter *waiter, uint64_t cookie, DAT_COUNT nmore)
{
	assert_int_equal(pthread_join(waiter->thread, NULL), 0);
	dt_ok(waiter->ret);
	assert_int_equal(waiter->event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_true(waiter->event.event_data.dto_completion_event_data.user_cookie.as_64 == cookie);
	assert_int_equal(waiter->nmore, nmore);
}
