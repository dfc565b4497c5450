// SPDX-License-Identifier: BSD-2-Clause
/* What the programs about the fast path share (fast_lab.h). */
#include "fast_lab.h"

#include "fake_inner.h"

#define KNOWN_VENDOR 0x0002c9u

struct rig rig;
struct device device;
struct odd odd;

/* --- calls of the device --- */

static int counted_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	if (!device.is_off) {
		device.sends++;
		device.send = *wr;
		if (wr->num_sge)
			device.send_sge = *wr->sg_list;
	}
	return device.real.post_send(qp, wr, bad);
}

static int counted_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	if (!device.is_off) {
		device.recvs++;
		device.recv = *wr;
		if (wr->num_sge)
			device.recv_sge = *wr->sg_list;
	}
	return device.real.post_recv(qp, wr, bad);
}

static int counted_poll(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	if (device.is_off)
		return device.real.poll_cq(cq, count, wc);
	device.polls++;
	if (device.more_count) {
		*wc = device.more[0];
		memmove(device.more, device.more + 1, sizeof(device.more) - sizeof(*wc));
		device.more_count--;
		return 1;
	}
	return device.real.poll_cq(cq, device.most < count ? device.most : count, wc);
}

static void listen_in(struct ibv_context_ops *ops)
{
	device.real = *ops;
	ops->post_send = counted_send;
	ops->post_recv = counted_recv;
	ops->poll_cq = counted_poll;
}

/* --- inside --- */

struct core_handle *cell(DAT_HANDLE handle)
{
	return handle;
}

struct core_ep *inner(const struct rig_ep *ep)
{
	return cell(ep->ep)->object;
}

struct vrb_conn *conn_of(const struct rig_ep *ep)
{
	return vrb_conn_of(inner(ep));
}

uint16_t slow(DAT_HANDLE handle)
{
	return __atomic_load_n(&cell(handle)->slow_reasons, __ATOMIC_RELAXED);
}

bool is_fast(DAT_HANDLE handle)
{
	return !slow(handle);
}

void own(DAT_HANDLE handle)
{
	struct core_lock *lock = &cell(handle)->lock;
	unsigned times = 0;

	do {
		assert_in_range(times++, 0, 1u << 22);
		core_lock_acquire(lock);
		core_lock_release(lock);
	} while (core_fence_is_supported(CORE_FENCE_PROCESS) &&
		 !core_lock_is_biased_to(lock, core_lock_self()));
}

void own_all(void)
{
	own(rig.a.ep);
	own(rig.a.dto);
	own(rig.b.ep);
	own(rig.b.dto);
}

void go_slow(const struct rig_ep *ep)
{
	core_lock_acquire(&cell(ep->ep)->lock);
	conn_of(ep)->has_fast_path = false;
	vrb_update_slow_reasons(inner(ep));
	core_lock_release(&cell(ep->ep)->lock);
	assert_int_equal(slow(ep->ep) & CORE_EP_SLOW_CONN, CORE_EP_SLOW_CONN);
}

int kept(void)
{
	return conn_of(&rig.a)->cq->kept_count;
}

/* --- calls, as consumers make them --- */

DAT_DTO_COOKIE cookie_of(uint64_t value)
{
	return (DAT_DTO_COOKIE){.as_64 = value};
}

DAT_RETURN send_iov(const struct rig_ep *ep, DAT_COUNT count, DAT_LMR_TRIPLET *iov, uint64_t cookie,
		    DAT_COMPLETION_FLAGS flags)
{
	return CALLS(ep->ep)->ep_post_send_func(ep->ep, count, iov, cookie_of(cookie), flags);
}

DAT_RETURN recv_iov(const struct rig_ep *ep, DAT_COUNT count, DAT_LMR_TRIPLET *iov, uint64_t cookie,
		    DAT_COMPLETION_FLAGS flags)
{
	return CALLS(ep->ep)->ep_post_recv_func(ep->ep, count, iov, cookie_of(cookie), flags);
}

DAT_RETURN write_iov(const struct rig_ep *ep, DAT_COUNT count, DAT_LMR_TRIPLET *iov,
		     uint64_t cookie, const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags)
{
	return CALLS(ep->ep)->ep_post_rdma_write_func(ep->ep, count, iov, cookie_of(cookie), remote,
						      flags);
}

DAT_RMR_TRIPLET remote_seg(size_t offset, size_t len)
{
	return (DAT_RMR_TRIPLET){.rmr_context = rig.rkey,
				 .target_address = (uintptr_t)rig.memory + offset,
				 .segment_length = len};
}

DAT_RETURN send_len(const struct rig_ep *ep, size_t len, uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, len);

	return send_iov(ep, 1, &seg, cookie, 0);
}

DAT_RETURN write_len(const struct rig_ep *ep, size_t len, uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, len);
	DAT_RMR_TRIPLET to = remote_seg(HALF, len);

	return write_iov(ep, 1, &seg, cookie, &to, 0);
}

DAT_RETURN recv_len(const struct rig_ep *ep, size_t len, uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, HALF, len);

	return recv_iov(ep, 1, &seg, cookie, 0);
}

DAT_RETURN dequeue(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	return CALLS(evd)->evd_dequeue_func(evd, event);
}

bool take(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	memset(event, 0xee, sizeof(*event));
	for (int i = 0; i < POLLS; i++) {
		DAT_RETURN ret = dequeue(evd, event);

		if (ret == DAT_SUCCESS)
			return true;
		assert_int_equal(ret, DAT_QUEUE_EMPTY); /* without class and subtype: GEN-07 */
	}
	return false;
}

void check_event(const DAT_EVENT *event, DAT_EVD_HANDLE evd, DAT_EP_HANDLE ep, uint64_t cookie,
		 DAT_DTO_COMPLETION_STATUS status, DAT_VLEN len)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *data = &event->event_data.dto_completion_event_data;

	assert_int_equal(event->event_number, DAT_DTO_COMPLETION_EVENT);
	assert_ptr_equal(event->evd_handle, evd);
	assert_ptr_equal(data->ep_handle, ep);
	assert_int_equal(data->user_cookie.as_64, cookie);
	assert_int_equal(data->status, status);
	if (status == DAT_DTO_SUCCESS)
		assert_int_equal(data->transfered_length, len);
}

void expect_on(DAT_EVD_HANDLE evd, const struct rig_ep *ep, uint64_t cookie, DAT_VLEN len)
{
	DAT_EVENT event;

	assert_true(take(evd, &event));
	check_event(&event, evd, ep->ep, cookie, DAT_DTO_SUCCESS, len);
}

void expect(const struct rig_ep *ep, uint64_t cookie, DAT_VLEN len)
{
	expect_on(ep->dto, ep, cookie, len);
}

void expect_flushed(const struct rig_ep *ep, uint64_t cookie)
{
	DAT_EVENT event = rig_event(ep->dto);

	check_event(&event, ep->dto, ep->ep, cookie, DAT_DTO_ERR_FLUSHED, 0);
}

void expect_none(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	assert_false(take(evd, &event));
}

void expect_at_once(const struct rig_ep *ep, uint64_t cookie, DAT_VLEN len)
{
	const struct core_evd *evd = cell(ep->dto)->object;
	uint64_t tail = evd->tail;
	DAT_EVENT event;

	assert_int_equal(evd->head, tail);
	assert_true(is_fast(ep->dto));
	assert_true(is_fast(ep->ep));
	assert_int_equal(dequeue(ep->dto, &event), DAT_SUCCESS);
	assert_int_equal(evd->tail, tail);
	check_event(&event, ep->dto, ep->ep, cookie, DAT_DTO_SUCCESS, len);
	assert_true(is_fast(ep->dto));
	assert_true(is_fast(ep->ep));
}

/* --- begin and end --- */

void remake(struct rig_ep *ep, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
	    void (*change)(DAT_EP_ATTR *attr))
{
	DAT_EP_PARAM param;

	assert_int_equal(core_ep_query(ep->ep, DAT_EP_FIELD_ALL, &param), DAT_SUCCESS);
	assert_int_equal(core_ep_free(ep->ep), DAT_SUCCESS);
	change(&param.ep_attr);
	assert_int_equal(
		core_ep_create(rig.ia, rig.pz, recv, request, ep->conn, &param.ep_attr, &ep->ep),
		DAT_SUCCESS);
}

void small(DAT_EP_ATTR *attr)
{
	attr->max_request_dtos = ROOM;
	attr->max_recv_dtos = ROOM;
	attr->max_message_size = MESSAGE_MAX;
	attr->max_rdma_size = RDMA_MAX;
}

void open_rig(void)
{
	fake_hold(false); /* as a failed test may have left it */
	fake_be_vendor(KNOWN_VENDOR);
	fake_other_ops = listen_in;
	memset(&device.send, 0, sizeof(device) - offsetof(__typeof__(device), send));
	device.is_off = true;
	device.most = 1;
	rig.qual = 0;
	assert_int_equal(rig_open(&rig), DAT_SUCCESS);
	assert_int_equal(rig_make(&rig), DAT_SUCCESS);
}

void join(void)
{
	assert_int_equal(rig_connect(&rig, NULL, 0), DAT_SUCCESS);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_ESTABLISHED);
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_ESTABLISHED);
}

static void take_any(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	assert_true(take(evd, &event));
}

void settle_on(DAT_EVD_HANDLE a_recv, DAT_EVD_HANDLE b_recv)
{
	fake_hold(true);
	device.is_off = false;
	own_all();
	assert_int_equal(recv_len(&rig.a, 64, 1), DAT_SUCCESS);
	assert_int_equal(recv_len(&rig.b, 64, 1), DAT_SUCCESS);
	assert_int_equal(send_len(&rig.a, 8, 2), DAT_SUCCESS);
	take_any(rig.a.dto);
	take_any(b_recv);
	assert_int_equal(send_len(&rig.b, 8, 2), DAT_SUCCESS);
	take_any(rig.b.dto);
	take_any(a_recv);
}

void settle(void)
{
	settle_on(rig.a.dto, rig.b.dto);
}

int setup(void **state)
{
	(void)state;
	open_rig();
	remake(&rig.a, rig.a.dto, rig.a.dto, small);
	join();
	settle();
	assert_true(is_fast(rig.a.ep) && is_fast(rig.a.dto));
	assert_true(is_fast(rig.b.ep) && is_fast(rig.b.dto));
	return 0;
}

void let_go(void)
{
	device.is_off = true;
	fake_hold(false);
}

int teardown(void **state)
{
	(void)state;
	let_go();
	fake_fail_at(0);
	rig_close(&rig);
	return 0;
}

int setup_at_work(void **state)
{
	(void)state;
	let_go();
	fake_be_vendor(KNOWN_VENDOR);
	fake_other_ops = NULL;
	rig.qual = 0;
	rig_begin(&rig);
	return 0;
}

int teardown_at_work(void **state)
{
	(void)state;
	rig_close(&rig);
	fake_be_vendor(0);
	return 0;
}

/* --- other EVDs and regions --- */

DAT_EVD_HANDLE make_evd(DAT_COUNT qlen, DAT_CNO_HANDLE cno)
{
	DAT_EVD_HANDLE evd;

	assert_int_equal(
		core_evd_create(rig.ia, qlen, cno,
				DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG | DAT_EVD_SOFTWARE_FLAG,
				&evd),
		DAT_SUCCESS);
	return evd;
}

DAT_LMR_HANDLE make_region(size_t len, DAT_MEM_PRIV_FLAGS privileges, DAT_LMR_CONTEXT *key)
{
	DAT_REGION_DESCRIPTION region = {.for_va = rig.memory};
	DAT_LMR_HANDLE lmr;

	assert_int_equal(core_lmr_create(rig.ia, DAT_MEM_TYPE_VIRTUAL, region, len, rig.pz,
					 privileges, &lmr, key, NULL, NULL, NULL),
			 DAT_SUCCESS);
	return lmr;
}

void make_odd(void)
{
	DAT_LMR_HANDLE freed = make_region(RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &odd.freed_key);

	odd.other = make_region(RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &odd.other_key);
	odd.little = make_region(64, DAT_MEM_PRIV_ALL_FLAG, &odd.little_key);
	assert_int_equal(core_lmr_free(freed), DAT_SUCCESS);
	assert_int_equal(core_rmr_create(rig.pz, &odd.rmr), DAT_SUCCESS);
}

DAT_RETURN post_seg(int call, DAT_LMR_CONTEXT key, DAT_VADDR address, DAT_VLEN len)
{
	DAT_LMR_TRIPLET seg = {
		.lmr_context = key, .virtual_address = address, .segment_length = len};
	DAT_RMR_TRIPLET to = remote_seg(0, RIG_LEN);

	if (call == 0)
		return send_iov(&rig.a, 1, &seg, ODD_COOKIE, 0);
	if (call == 1)
		return write_iov(&rig.a, 1, &seg, ODD_COOKIE, &to, 0);
	return recv_iov(&rig.a, 1, &seg, ODD_COOKIE, 0);
}

DAT_RETURN write_flags(DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);
	DAT_RMR_TRIPLET to = remote_seg(HALF, 8);

	return write_iov(&rig.a, 1, &seg, ODD_COOKIE, &to, flags);
}

DAT_RETURN post_two(int call)
{
	DAT_LMR_TRIPLET iov[2] = {rig_seg(&rig, 0, 8), rig_seg(&rig, 64, 16)};
	DAT_RMR_TRIPLET to = remote_seg(HALF, 24);

	if (call == 0)
		return send_iov(&rig.a, 2, iov, ODD_COOKIE, 0);
	if (call == 1)
		return write_iov(&rig.a, 2, iov, ODD_COOKIE, &to, 0);
	return recv_iov(&rig.a, 2, iov, ODD_COOKIE, 0);
}

DAT_RETURN post_other(int call)
{
	return post_seg(call, odd.other_key, (uintptr_t)rig.memory + 16, 32);
}

DAT_RETURN post_bind(int arg)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, HALF, 64);

	(void)arg;
	return core_rmr_bind(odd.rmr, &seg, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, rig.a.ep,
			     (DAT_RMR_COOKIE){.as_64 = ODD_COOKIE}, 0, &odd.bound);
}

unsigned drain(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	unsigned count = 0;

	while (take(evd, &event))
		count++;
	return count;
}
