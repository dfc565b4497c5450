// SPDX-License-Identifier: BSD-2-Clause
/*
 * The express way (core/express.h, src/verbs/express.c) on a device whose posts and polls are no
 * system calls: what the consumer and the device see of it, that nothing unusual is lost on it, and
 * that the books are in order when it ends: as they are where it never began. The provider's own
 * thread is held, so that whatever happens is done by the calls of the test.
 */
#include "rig.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include <dat/dat_registry.h>

#include "core/express.h"
#include "core/transport.h"
#include "fake_inner.h"
#include "verbs/usual.h"

#define KNOWN_VENDOR 0x0002c9u
#define HALF (RIG_LEN / 2)
#define ROOM 5u	 /* requests, and Receives, of a: the rings have 8 slots */
#define SLOTS 8u /* of either */
#define LOOKS 64
#define MESSAGE_MOST 8192u
#define RDMA_MOST 16384u
#define CALLS(handle) (*(const DAT_PROVIDER *const *)(handle))

static struct rig rig;

/* --- what the device is told, and tells --- */

static struct {
	struct ibv_context_ops real;
	unsigned sends, recvs, polls; /* calls */
	struct ibv_send_wr send;      /* the last of each */
	struct ibv_sge send_sge;
	struct ibv_recv_wr recv;
	struct ibv_sge recv_sge;
	int most;	       /* completions of one poll */
	struct ibv_wc more[4]; /* completions that are told first, one by one */
	unsigned more_count;
	DAT_EVD_HANDLE watched; /* NULL, or: was it on the express way at the last poll? */
	bool was_on;
	bool is_off; /* others than these are counted */
} device;

static int hear_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	if (!device.is_off) {
		device.sends++;
		device.send = *wr;
		if (wr->num_sge)
			device.send_sge = *wr->sg_list;
	}
	return device.real.post_send(qp, wr, bad);
}

static int hear_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	if (!device.is_off) {
		device.recvs++;
		device.recv = *wr;
		if (wr->num_sge)
			device.recv_sge = *wr->sg_list;
	}
	return device.real.post_recv(qp, wr, bad);
}

static int tell(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	if (device.is_off)
		return device.real.poll_cq(cq, count, wc);
	device.polls++;
	if (device.watched)
		device.was_on = ((struct core_handle *)device.watched)->express;
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
	ops->post_send = hear_send;
	ops->post_recv = hear_recv;
	ops->poll_cq = tell;
}

/* --- inside --- */

static struct core_handle *cell(DAT_HANDLE handle)
{
	return handle;
}

static struct core_ep *inner(const struct rig_ep *ep)
{
	return cell(ep->ep)->object;
}

static struct vrb_conn *conn_of(const struct rig_ep *ep)
{
	return vrb_conn_of(inner(ep));
}

static bool is_on(DAT_HANDLE handle)
{
	return cell(handle)->express;
}

/* Takes it until it is this thread's own; never after it was that of a thread that has ended. */
static void own(DAT_HANDLE handle)
{
	struct core_lock *lock = &cell(handle)->lock;
	unsigned times = 0;

	do {
		assert_in_range(times++, 0, 1u << 22);
		core_lock_acquire(lock);
		core_lock_release(lock);
	} while (CORE_LOCK_IS_OWNED && core_fence_can(CORE_FENCE_PROCESS) &&
		 !core_lock_is_own(lock, core_lock_self()));
}

static void own_all(void)
{
	own(rig.a.ep);
	own(rig.a.dto);
	own(rig.b.ep);
	own(rig.b.dto);
}

static void end_way(const struct rig_ep *ep)
{
	core_lock_acquire(&cell(ep->ep)->lock);
	core_ep_express_end(inner(ep));
	core_lock_release(&cell(ep->ep)->lock);
}

/* --- calls, as consumers make them --- */

static DAT_DTO_COOKIE cookie_of(uint64_t value)
{
	return (DAT_DTO_COOKIE){.as_64 = value};
}

static DAT_RETURN send_iov(const struct rig_ep *ep, DAT_COUNT count, DAT_LMR_TRIPLET *iov,
			   uint64_t cookie, DAT_COMPLETION_FLAGS flags)
{
	return CALLS(ep->ep)->ep_post_send_func(ep->ep, count, iov, cookie_of(cookie), flags);
}

static DAT_RETURN recv_iov(const struct rig_ep *ep, DAT_COUNT count, DAT_LMR_TRIPLET *iov,
			   uint64_t cookie, DAT_COMPLETION_FLAGS flags)
{
	return CALLS(ep->ep)->ep_post_recv_func(ep->ep, count, iov, cookie_of(cookie), flags);
}

static DAT_RETURN write_iov(const struct rig_ep *ep, DAT_COUNT count, DAT_LMR_TRIPLET *iov,
			    uint64_t cookie, const DAT_RMR_TRIPLET *remote,
			    DAT_COMPLETION_FLAGS flags)
{
	return CALLS(ep->ep)->ep_post_rdma_write_func(ep->ep, count, iov, cookie_of(cookie), remote,
						      flags);
}

static DAT_RMR_TRIPLET remote_seg(size_t offset, size_t len)
{
	return (DAT_RMR_TRIPLET){.rmr_context = rig.rkey,
				 .target_address = (uintptr_t)rig.memory + offset,
				 .segment_length = len};
}

static DAT_RETURN send_len(const struct rig_ep *ep, size_t len, uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, len);

	return send_iov(ep, 1, &seg, cookie, 0);
}

static DAT_RETURN write_len(const struct rig_ep *ep, size_t len, uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, len);
	DAT_RMR_TRIPLET to = remote_seg(HALF, len);

	return write_iov(ep, 1, &seg, cookie, &to, 0);
}

static DAT_RETURN recv_len(const struct rig_ep *ep, size_t len, uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, HALF, len);

	return recv_iov(ep, 1, &seg, cookie, 0);
}

static DAT_RETURN dequeue(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	return CALLS(evd)->evd_dequeue_func(evd, event);
}

/* The next event of the dispatcher; each look may find one of another. False: there is none. */
static bool take(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	memset(event, 0xee, sizeof(*event));
	for (int i = 0; i < LOOKS; i++) {
		DAT_RETURN ret = dequeue(evd, event);

		if (ret == DAT_SUCCESS)
			return true;
		assert_int_equal(ret, DAT_QUEUE_EMPTY); /* bare: GEN-07 */
	}
	return false;
}

static void check_event(const DAT_EVENT *event, DAT_EVD_HANDLE evd, DAT_EP_HANDLE ep,
			uint64_t cookie, DAT_DTO_COMPLETION_STATUS status, DAT_VLEN len)
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

static void expect_on(DAT_EVD_HANDLE evd, const struct rig_ep *ep, uint64_t cookie, DAT_VLEN len)
{
	DAT_EVENT event;

	assert_true(take(evd, &event));
	check_event(&event, evd, ep->ep, cookie, DAT_DTO_SUCCESS, len);
}

static void expect(const struct rig_ep *ep, uint64_t cookie, DAT_VLEN len)
{
	expect_on(ep->dto, ep, cookie, len);
}

static void expect_flushed(const struct rig_ep *ep, uint64_t cookie)
{
	DAT_EVENT event = rig_event(ep->dto);

	check_event(&event, ep->dto, ep->ep, cookie, DAT_DTO_ERR_FLUSHED, 0);
}

static void expect_none(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	assert_false(take(evd, &event));
}

/* By the first look, and not by way of the dispatcher's ring, or of who hands completions on. */
static void expect_at_once(const struct rig_ep *ep, uint64_t cookie, DAT_VLEN len)
{
	struct core_evd *evd = cell(ep->dto)->object;
	DAT_EVENT event;

	assert_true(is_on(ep->dto));
	evd->is_taken = false;
	assert_int_equal(dequeue(ep->dto, &event), DAT_SUCCESS);
	assert_false(evd->is_taken);
	check_event(&event, ep->dto, ep->ep, cookie, DAT_DTO_SUCCESS, len);
	assert_true(is_on(ep->dto));
	assert_true(is_on(ep->ep));
}

/* --- begin and end --- */

/* a with other attributes or dispatchers; before it is connected. */
static void remake(struct rig_ep *ep, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
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

static void small(DAT_EP_ATTR *attr)
{
	attr->max_request_dtos = ROOM;
	attr->max_recv_dtos = ROOM;
	attr->max_message_size = MESSAGE_MOST;
	attr->max_rdma_size = RDMA_MOST;
}

static void open_rig(void)
{
	fake_hold(false); /* as a test that failed has left it */
	fake_be_vendor(KNOWN_VENDOR);
	memset(&device.send, 0, sizeof(device) - offsetof(__typeof__(device), send));
	device.is_off = true;
	device.most = 1;
	rig.qual = 0;
	assert_int_equal(rig_open(&rig), DAT_SUCCESS);
	assert_int_equal(rig_make(&rig), DAT_SUCCESS);
}

static void join(void)
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

/* From here on only the test's calls do anything; each has posted of each kind once. */
static void settle_on(DAT_EVD_HANDLE a_recv, DAT_EVD_HANDLE b_recv)
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

static void settle(void)
{
	settle_on(rig.a.dto, rig.b.dto);
}

static int setup(void **state)
{
	(void)state;
	open_rig();
	remake(&rig.a, rig.a.dto, rig.a.dto, small);
	join();
	settle();
	assert_true(is_on(rig.a.ep) && is_on(rig.a.dto));
	assert_true(is_on(rig.b.ep) && is_on(rig.b.dto));
	return 0;
}

static void let_go(void)
{
	device.is_off = true;
	fake_hold(false);
}

static int teardown(void **state)
{
	(void)state;
	let_go();
	fake_fail_at(0);
	rig_close(&rig);
	return 0;
}

/* --- the usual --- */

/* EVD-DEQUEUE-01 EVD-STREAM-09: cookie, length, status and handles, by the first look */
static void post__usual__completed_on_the_way(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 3 * SLOTS; i++) {
		assert_int_equal(write_len(&rig.a, 100 + i, 10 + i), DAT_SUCCESS);
		assert_true(is_on(rig.a.ep));
		expect_at_once(&rig.a, 10 + i, 100 + i);
		assert_int_equal(recv_len(&rig.a, 300, 20 + i), DAT_SUCCESS);
		assert_int_equal(send_len(&rig.b, 200 + i, 30 + i), DAT_SUCCESS);
		expect_at_once(&rig.a, 20 + i, 200 + i);
		expect_at_once(&rig.b, 30 + i, 200 + i);
		assert_int_equal(recv_len(&rig.b, 300, 40 + i), DAT_SUCCESS);
		assert_int_equal(send_len(&rig.a, 50 + i, 50 + i), DAT_SUCCESS);
		expect_at_once(&rig.b, 40 + i, 50 + i);
		expect_at_once(&rig.a, 50 + i, 50 + i);
	}
	rig_no_event(rig.a.dto);
	rig_no_event(rig.b.dto);
}

static void check_request(uint64_t sequence, size_t offset, uint32_t len, enum ibv_wr_opcode opcode)
{
	uint32_t most = conn_of(&rig.a)->adapter->limits.inline_max;

	assert_int_equal(device.send.wr_id,
			 vrb_work_id(VRB_WORK_REQUEST, conn_of(&rig.a)->key, (uint32_t)sequence));
	assert_null(device.send.next);
	assert_int_equal(device.send.num_sge, 1);
	assert_int_equal(device.send.opcode, opcode);
	assert_int_equal(device.send.send_flags,
			 IBV_SEND_SIGNALED | (len <= most ? IBV_SEND_INLINE : 0));
	assert_int_equal(device.send_sge.addr, (uintptr_t)rig.memory + offset);
	assert_int_equal(device.send_sge.length, len);
	assert_int_equal(device.send_sge.lkey,
			 core_mem_slot(&inner(&rig.a)->ia->mem, rig.lkey)->local_keys[0]);
}

/* The work request as the device gets it, with data inline as far as they may be. */
static void post__usual__work_request_exact(void **state)
{
	uint32_t most = conn_of(&rig.a)->adapter->limits.inline_max;
	const uint32_t lens[] = {1, most - 1, most, most + 1, 4096, MESSAGE_MOST};

	(void)state;
	assert_in_range(most, 8, 256);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		uint64_t sequence = inner(&rig.a)->req.tail;
		DAT_LMR_TRIPLET seg = rig_seg(&rig, i, lens[i]);
		DAT_RMR_TRIPLET to = remote_seg(HALF + i, lens[i] + 7);

		memset(rig.memory, (int)i + 1, HALF);
		assert_int_equal(write_iov(&rig.a, 1, &seg, i, &to, 0), DAT_SUCCESS);
		check_request(sequence, i, lens[i], IBV_WR_RDMA_WRITE);
		assert_int_equal(device.send.wr.rdma.remote_addr, (uintptr_t)rig.memory + HALF + i);
		assert_int_equal(device.send.wr.rdma.rkey, rig.rkey);
		expect_at_once(&rig.a, i, lens[i]);
		assert_memory_equal(rig.memory, rig.memory + HALF + i, lens[i]);
		assert_int_equal(recv_len(&rig.b, MESSAGE_MOST, 7), DAT_SUCCESS);
		assert_int_equal(send_iov(&rig.a, 1, &seg, i, 0), DAT_SUCCESS);
		check_request(sequence + 1, i, lens[i], IBV_WR_SEND);
		expect(&rig.b, 7, lens[i]);
		expect(&rig.a, i, lens[i]);
	}
}

static void post_recv__usual__work_request_exact(void **state)
{
	struct core_recv_queue *queue = &inner(&rig.a)->recv;

	(void)state;
	for (uint32_t i = 0; i < 2 * SLOTS; i++) {
		uint32_t place = (uint32_t)((char *)&queue->slots[queue->tail & queue->mask] -
					    (char *)queue->slots);
		DAT_LMR_TRIPLET seg = rig_seg(&rig, HALF + i, 64 + i);

		assert_int_equal(recv_iov(&rig.a, 1, &seg, i, 0), DAT_SUCCESS);
		assert_true(is_on(rig.a.ep));
		assert_int_equal(device.recv.wr_id,
				 vrb_work_id(VRB_WORK_RECV, conn_of(&rig.a)->key, place));
		assert_null(device.recv.next);
		assert_int_equal(device.recv.num_sge, 1);
		assert_int_equal(device.recv_sge.addr, seg.virtual_address);
		assert_int_equal(device.recv_sge.length, 64 + i);
		assert_int_equal(device.recv_sge.lkey,
				 core_mem_slot(&inner(&rig.a)->ia->mem, rig.lkey)->local_keys[0]);
		assert_int_equal(send_len(&rig.b, 8, i), DAT_SUCCESS);
		expect_at_once(&rig.a, i, 8);
		expect_at_once(&rig.b, i, 8);
	}
}

/* DTO-37: several at once, over the end of the rings, in order */
static void post__several_outstanding__in_order_over_the_rings_end(void **state)
{
	uint64_t next = 100;

	(void)state;
	for (unsigned count = 1; count <= ROOM; count++) {
		for (unsigned round = 0; round < 2 * SLOTS; round++) {
			for (unsigned i = 0; i < count; i++)
				assert_int_equal(recv_len(&rig.a, 64, next + i), DAT_SUCCESS);
			for (unsigned i = 0; i < count; i++)
				assert_int_equal(write_len(&rig.a, 32 + i, next + i), DAT_SUCCESS);
			for (unsigned i = 0; i < count; i++)
				expect_at_once(&rig.a, next + i, 32 + i);
			for (unsigned i = 0; i < count; i++)
				assert_int_equal(send_len(&rig.b, 1 + i, next + i), DAT_SUCCESS);
			for (unsigned i = 0; i < count; i++) {
				expect_at_once(&rig.a, next + i, 1 + i);
				expect_at_once(&rig.b, next + i, 1 + i);
			}
			next += count;
		}
	}
	assert_true(is_on(rig.a.ep) && is_on(rig.b.ep));
}

/* DTO-114: full, refused, and room again as soon as a completion is taken */
static void post__queue_full__refused_until_a_completion_is_taken(void **state)
{
	(void)state;
	for (unsigned round = 0; round < SLOTS; round++) {
		for (unsigned i = 0; i < ROOM; i++) {
			assert_int_equal(recv_len(&rig.a, 64, i), DAT_SUCCESS);
			assert_int_equal(send_len(&rig.a, 8, i), DAT_SUCCESS);
		}
		assert_int_equal(send_len(&rig.a, 8, 9),
				 DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_TEP);
		assert_int_equal(write_len(&rig.a, 8, 9),
				 DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_TEP);
		assert_int_equal(recv_len(&rig.a, 64, 9),
				 DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_TEP);
		assert_true(is_on(rig.a.ep));
		for (unsigned i = 0; i < ROOM; i++)
			assert_int_equal(recv_len(&rig.b, 64, i), DAT_SUCCESS);
		for (unsigned i = 0; i < ROOM; i++) {
			expect(&rig.b, i, 8);
			expect(&rig.a, i, 8);
		}
		for (unsigned i = 0; i < ROOM; i++)
			assert_int_equal(send_len(&rig.b, 8, i), DAT_SUCCESS);
		expect(&rig.a, 0, 8);
		assert_int_equal(recv_len(&rig.a, 64, ROOM), DAT_SUCCESS);
		assert_int_equal(recv_len(&rig.a, 64, 9),
				 DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_TEP);
		assert_int_equal(send_len(&rig.b, 8, ROOM), DAT_SUCCESS);
		for (unsigned i = 1; i <= ROOM; i++)
			expect(&rig.a, i, 8);
		for (unsigned i = 0; i <= ROOM; i++)
			expect(&rig.b, i, 8);
		assert_true(is_on(rig.a.ep) && is_on(rig.b.ep));
	}
}

/* Found by a look at another dispatcher, one by one and several at once; the places come back. */
static void evd_dequeue__of_another_dispatcher__found_and_kept(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 3 * SLOTS; round++) {
		device.most = round % 3 ? VRB_POLL_BATCH : 1;
		for (unsigned i = 0; i < ROOM; i++) {
			assert_int_equal(write_len(&rig.a, 10 + i, 100 + i), DAT_SUCCESS);
			assert_int_equal(recv_len(&rig.a, 64, 200 + i), DAT_SUCCESS);
		}
		expect_none(rig.b.dto); /* hands on what a has */
		assert_false(is_on(rig.a.dto));
		assert_true(is_on(rig.a.ep));
		for (unsigned i = 0; i < ROOM; i++)
			expect(&rig.a, 100 + i, 10 + i);
		assert_true(is_on(rig.a.dto));
		for (unsigned i = 0; i < ROOM; i++)
			assert_int_equal(send_len(&rig.b, 20 + i, 300 + i), DAT_SUCCESS);
		for (unsigned i = 0; i < ROOM; i++)
			expect(&rig.b, 300 + i, 20 + i);
		for (unsigned i = 0; i < ROOM; i++)
			expect(&rig.a, 200 + i, 20 + i);
	}
	assert_true(is_on(rig.a.ep) && is_on(rig.b.ep));
}

/* --- dispatchers of other kinds --- */

static DAT_EVD_HANDLE make_evd(DAT_COUNT qlen, DAT_CNO_HANDLE cno)
{
	DAT_EVD_HANDLE evd;

	assert_int_equal(
		core_evd_create(rig.ia, qlen, cno,
				DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG | DAT_EVD_SOFTWARE_FLAG,
				&evd),
		DAT_SUCCESS);
	return evd;
}

/* One for requests and one for Receives: each gets its own. */
static void evd_dequeue__separate_dispatchers__each_its_own(void **state)
{
	DAT_EVD_HANDLE recv;

	(void)state;
	open_rig();
	recv = make_evd(64, DAT_HANDLE_NULL);
	remake(&rig.a, recv, rig.a.dto, small);
	join();
	settle_on(recv, rig.b.dto);
	own(recv);
	for (uint64_t i = 0; i < 2 * SLOTS; i++) {
		assert_int_equal(recv_len(&rig.a, 64, 100 + i), DAT_SUCCESS);
		assert_int_equal(send_len(&rig.b, 5, 200 + i), DAT_SUCCESS);
		assert_int_equal(write_len(&rig.a, 6, 300 + i), DAT_SUCCESS);
		if (i % 2) {
			expect(&rig.a, 300 + i, 6);
			expect_on(recv, &rig.a, 100 + i, 5);
		} else {
			expect_on(recv, &rig.a, 100 + i, 5);
			expect(&rig.a, 300 + i, 6);
		}
		expect(&rig.b, 200 + i, 5);
		assert_true(is_on(rig.a.ep));
		expect_none(recv);
		expect_none(rig.a.dto);
	}
	teardown(state);
}

/* Two endpoints with one dispatcher: the event says whose it is. */
static void evd_dequeue__two_endpoints__told_apart(void **state)
{
	(void)state;
	open_rig();
	remake(&rig.a, rig.a.dto, rig.a.dto, small);
	remake(&rig.b, rig.a.dto, rig.a.dto, small);
	rig.b.dto = rig.a.dto;
	join();
	settle();
	for (uint64_t i = 0; i < 3 * SLOTS; i++) {
		assert_int_equal(write_len(&rig.a, 3, 100 + i), DAT_SUCCESS);
		assert_int_equal(write_len(&rig.b, 4, 100 + i), DAT_SUCCESS);
		assert_int_equal(recv_len(&rig.b, 64, 200 + i), DAT_SUCCESS);
		assert_int_equal(send_len(&rig.a, 5, 300 + i), DAT_SUCCESS);
		expect_at_once(&rig.a, 100 + i, 3);
		expect_at_once(&rig.b, 100 + i, 4);
		expect_at_once(&rig.b, 200 + i, 5);
		expect_at_once(&rig.a, 300 + i, 5);
	}
	rig_no_event(rig.a.dto);
	teardown(state);
}

/* --- what is not usual --- */

static struct {
	DAT_LMR_HANDLE other, little;
	DAT_LMR_CONTEXT other_key, little_key, freed_key;
	DAT_RMR_HANDLE rmr;
	DAT_RMR_CONTEXT bound;
} odd;

static DAT_LMR_HANDLE make_region(size_t len, DAT_MEM_PRIV_FLAGS privileges, DAT_LMR_CONTEXT *key)
{
	DAT_REGION_DESCRIPTION region = {.for_va = rig.memory};
	DAT_LMR_HANDLE lmr;

	assert_int_equal(core_lmr_create(rig.ia, DAT_MEM_TYPE_VIRTUAL, region, len, rig.pz,
					 privileges, &lmr, key, NULL, NULL, NULL),
			 DAT_SUCCESS);
	return lmr;
}

static void make_odd(void)
{
	DAT_LMR_HANDLE freed = make_region(RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &odd.freed_key);

	odd.other = make_region(RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &odd.other_key);
	odd.little = make_region(64, DAT_MEM_PRIV_ALL_FLAG, &odd.little_key);
	assert_int_equal(core_lmr_free(freed), DAT_SUCCESS);
	assert_int_equal(core_rmr_create(rig.pz, &odd.rmr), DAT_SUCCESS);
}

#define ODD_COOKIE 777u

static DAT_RETURN send_flags(DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);

	return send_iov(&rig.a, 1, &seg, ODD_COOKIE, flags);
}

static DAT_RETURN write_flags(DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);
	DAT_RMR_TRIPLET to = remote_seg(HALF, 8);

	return write_iov(&rig.a, 1, &seg, ODD_COOKIE, &to, flags);
}

static DAT_RETURN recv_flags(DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, HALF, 64);

	return recv_iov(&rig.a, 1, &seg, ODD_COOKIE, flags);
}

/* One segment of that key, begin and length, by which call: 0 Send, 1 Write, 2 Receive. */
static DAT_RETURN post_seg(int call, DAT_LMR_CONTEXT key, DAT_VADDR address, DAT_VLEN len)
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

static DAT_RETURN post_two(int call)
{
	DAT_LMR_TRIPLET iov[2] = {rig_seg(&rig, 0, 8), rig_seg(&rig, 64, 16)};
	DAT_RMR_TRIPLET to = remote_seg(HALF, 24);

	if (call == 0)
		return send_iov(&rig.a, 2, iov, ODD_COOKIE, 0);
	if (call == 1)
		return write_iov(&rig.a, 2, iov, ODD_COOKIE, &to, 0);
	return recv_iov(&rig.a, 2, iov, ODD_COOKIE, 0);
}

static DAT_RETURN post_none(int call)
{
	DAT_RMR_TRIPLET to = remote_seg(HALF, 0);

	if (call == 0)
		return send_iov(&rig.a, 0, NULL, ODD_COOKIE, 0);
	if (call == 1)
		return write_iov(&rig.a, 0, NULL, ODD_COOKIE, &to, 0);
	return recv_iov(&rig.a, 0, NULL, ODD_COOKIE, 0);
}

static DAT_RETURN post_null(int call)
{
	DAT_RMR_TRIPLET to = remote_seg(HALF, 8);

	if (call == 0)
		return send_iov(&rig.a, 1, NULL, ODD_COOKIE, 0);
	if (call == 1)
		return write_iov(&rig.a, 1, NULL, ODD_COOKIE, &to, 0);
	return recv_iov(&rig.a, 1, NULL, ODD_COOKIE, 0);
}

static DAT_RETURN write_no_remote(int arg)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);

	(void)arg;
	return write_iov(&rig.a, 1, &seg, ODD_COOKIE, NULL, 0);
}

static DAT_RETURN write_remote_len(int len)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);
	DAT_RMR_TRIPLET to = remote_seg(HALF, (size_t)len);

	return write_iov(&rig.a, 1, &seg, ODD_COOKIE, &to, 0);
}

static DAT_RETURN post_read(int arg)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);
	DAT_RMR_TRIPLET from = remote_seg(HALF, 8);

	(void)arg;
	return CALLS(rig.a.ep)->ep_post_rdma_read_func(rig.a.ep, 1, &seg, cookie_of(ODD_COOKIE),
						       &from, 0);
}

static DAT_RETURN post_bind(int arg)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, HALF, 64);

	(void)arg;
	return core_rmr_bind(odd.rmr, &seg, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, rig.a.ep,
			     (DAT_RMR_COOKIE){.as_64 = ODD_COOKIE}, 0, &odd.bound);
}

static DAT_RETURN set_watermarks(int hard)
{
	return core_ep_set_watermark(rig.a.ep, hard ? DAT_WATERMARK_INFINITE : 4,
				     hard ? 4 : DAT_WATERMARK_INFINITE);
}

static DAT_RETURN send_with(int flags)
{
	return send_flags((DAT_COMPLETION_FLAGS)flags);
}

static DAT_RETURN write_with(int flags)
{
	return write_flags((DAT_COMPLETION_FLAGS)flags);
}

static DAT_RETURN recv_with(int flags)
{
	return recv_flags((DAT_COMPLETION_FLAGS)flags);
}

static DAT_RETURN post_other(int call)
{
	return post_seg(call, odd.other_key, (uintptr_t)rig.memory + 16, 32);
}

static DAT_RETURN post_unknown(int call)
{
	return post_seg(call, rig.lkey + 0x40000000u, (uintptr_t)rig.memory, 8);
}

static DAT_RETURN post_no_key(int call)
{
	return post_seg(call, 0, (uintptr_t)rig.memory, 8);
}

static DAT_RETURN post_freed(int call)
{
	return post_seg(call, odd.freed_key, (uintptr_t)rig.memory, 8);
}

static DAT_RETURN post_little(int call)
{
	return post_seg(call, odd.little_key, (uintptr_t)rig.memory, 65);
}

static DAT_RETURN post_below(int call)
{
	return post_seg(call, rig.lkey, (uintptr_t)rig.memory - 1, 8);
}

static DAT_RETURN post_behind(int call)
{
	return post_seg(call, rig.lkey, (uintptr_t)rig.memory + RIG_LEN - 7, 8);
}

static DAT_RETURN post_up_to_the_end(int call)
{
	return post_seg(call, rig.lkey, (uintptr_t)rig.memory + RIG_LEN - 8, 8);
}

static DAT_RETURN post_empty(int call)
{
	return post_seg(call, rig.lkey, (uintptr_t)rig.memory, 0);
}

static DAT_RETURN post_huge(int call)
{
	return post_seg(call, rig.lkey, (uintptr_t)rig.memory, UINT64_MAX);
}

static DAT_RETURN post_larger_than_region(int call)
{
	return post_seg(call, rig.lkey, (uintptr_t)rig.memory, (DAT_VLEN)RIG_LEN + 1);
}

static DAT_RETURN post_longest(int call)
{
	return post_seg(call, rig.lkey, (uintptr_t)rig.memory, call ? RDMA_MOST : MESSAGE_MOST);
}

static DAT_RETURN post_too_long(int call)
{
	return post_seg(call, rig.lkey, (uintptr_t)rig.memory,
			(call ? RDMA_MOST : MESSAGE_MOST) + 1);
}

#define BAD_ARG(number) (DAT_INVALID_PARAMETER | DAT_INVALID_ARG##number)
#define NO_KEY(what) (DAT_PRIVILEGES_VIOLATION | DAT_PRIVILEGES_##what)

/* `ends`: it leaves the express way. `events`: how many more come of it. */
static const struct odd_call {
	const char *name;
	DAT_RETURN (*call)(int arg);
	int arg;
	DAT_RETURN ret;
	bool ends;
	unsigned events;
} odd_calls[] = {
	{"Send suppressed", send_with, DAT_COMPLETION_SUPPRESS_FLAG, 0, true, 0},
	{"Send solicited", send_with, DAT_COMPLETION_SOLICITED_WAIT_FLAG, 0, true, 1},
	{"Send fenced", send_with, DAT_COMPLETION_BARRIER_FENCE_FLAG, 0, true, 1},
	{"Send unsignalled", send_with, DAT_COMPLETION_UNSIGNALLED_FLAG, BAD_ARG(5), false, 0},
	{"Write suppressed", write_with, DAT_COMPLETION_SUPPRESS_FLAG, 0, true, 0},
	{"Write solicited", write_with, DAT_COMPLETION_SOLICITED_WAIT_FLAG, 0, true, 1},
	{"Write fenced", write_with, DAT_COMPLETION_BARRIER_FENCE_FLAG, 0, true, 1},
	{"Write unsignalled", write_with, DAT_COMPLETION_UNSIGNALLED_FLAG, BAD_ARG(6), false, 0},
	{"Receive suppressed", recv_with, DAT_COMPLETION_SUPPRESS_FLAG, BAD_ARG(5), false, 0},
	{"Receive unsignalled", recv_with, DAT_COMPLETION_UNSIGNALLED_FLAG, BAD_ARG(5), false, 0},
	{"Send of none", post_none, 0, 0, true, 1},
	{"Write of none", post_none, 1, 0, true, 1},
	{"Receive of none", post_none, 2, 0, true, 0},
	{"Send of two", post_two, 0, 0, true, 1},
	{"Write of two", post_two, 1, 0, true, 1},
	{"Receive of two", post_two, 2, 0, true, 0},
	{"Send from NULL", post_null, 0, BAD_ARG(3), false, 0},
	{"Write from NULL", post_null, 1, BAD_ARG(3), false, 0},
	{"Receive into NULL", post_null, 2, BAD_ARG(3), false, 0},
	{"Send from another region", post_other, 0, 0, true, 1},
	{"Write from another region", post_other, 1, 0, true, 1},
	{"Receive into another region", post_other, 2, 0, true, 0},
	{"Send of an unknown key", post_unknown, 0, NO_KEY(READ), false, 0},
	{"Write of an unknown key", post_unknown, 1, NO_KEY(READ), false, 0},
	{"Receive of an unknown key", post_unknown, 2, NO_KEY(WRITE), false, 0},
	{"Send of no key", post_no_key, 0, NO_KEY(READ), false, 0},
	{"Send of a freed key", post_freed, 0, NO_KEY(READ), false, 0},
	{"Write of a freed key", post_freed, 1, NO_KEY(READ), false, 0},
	{"Receive of a freed key", post_freed, 2, NO_KEY(WRITE), false, 0},
	{"Send beyond a little region", post_little, 0, BAD_ARG(3), false, 0},
	{"Send from below", post_below, 0, BAD_ARG(3), false, 0},
	{"Write from below", post_below, 1, BAD_ARG(3), false, 0},
	{"Receive below", post_below, 2, BAD_ARG(3), false, 0},
	{"Send from behind", post_behind, 0, BAD_ARG(3), false, 0},
	{"Write from behind", post_behind, 1, BAD_ARG(3), false, 0},
	{"Receive behind", post_behind, 2, BAD_ARG(3), false, 0},
	{"Send up to the end", post_up_to_the_end, 0, 0, false, 1},
	{"Write up to the end", post_up_to_the_end, 1, 0, false, 1},
	{"Receive up to the end", post_up_to_the_end, 2, 0, false, 0},
	{"Send of 0 bytes", post_empty, 0, 0, true, 1},
	{"Write of 0 bytes", post_empty, 1, 0, true, 1},
	{"Receive of 0 bytes", post_empty, 2, 0, true, 0},
	{"Send of all memory", post_huge, 0, BAD_ARG(3), false, 0},
	{"Write of all memory", post_huge, 1, BAD_ARG(3), false, 0},
	{"Receive of all memory", post_huge, 2, BAD_ARG(3), false, 0},
	{"Send of more than the region", post_larger_than_region, 0, BAD_ARG(3), false, 0},
	{"Receive of more than the region", post_larger_than_region, 2, BAD_ARG(3), false, 0},
	{"Send as long as may be", post_longest, 0, 0, false, 1},
	{"Write as long as may be", post_longest, 1, 0, false, 1},
	{"Send too long", post_too_long, 0, BAD_ARG(3), false, 0},
	{"Write too long", post_too_long, 1, BAD_ARG(3), false, 0},
	{"Write to nowhere", write_no_remote, 0, BAD_ARG(5), false, 0},
	{"Write to too little", write_remote_len, 7, DAT_LENGTH_ERROR, false, 0},
	{"Write to as much", write_remote_len, 8, 0, false, 1},
	{"Write to more", write_remote_len, 9, 0, false, 1},
	{"RDMA Read", post_read, 0, 0, true, 1},
	{"bind", post_bind, 0, 0, true, 1},
	{"soft watermark", set_watermarks, 0, 0, true, 0},
	{"hard watermark", set_watermarks, 1, 0, true, 0},
};

/* The books of a. */
struct books {
	uint64_t sq_posted, sq_done, sq_seen, post_next, reap_next, recv_next;
	uint64_t req_head, req_tail, recv_head, recv_tail;
	uint32_t signalled, recv_out;
	struct {
		uint64_t op, flags, segments, len, cookie, sequence, word[2];
		bool is_done, is_bind;
		DAT_LMR_TRIPLET iov[2];
	} req[SLOTS];
	struct {
		uint64_t flags, segments, len, cookie;
		DAT_LMR_TRIPLET iov[2];
	} recv[SLOTS];
};

/* Keys are others in each instance. */
static DAT_LMR_CONTEXT name_key(DAT_LMR_CONTEXT key)
{
	return key == rig.lkey ? 1 : key == odd.other_key ? 2 : 3;
}

static void copy_iov(DAT_LMR_TRIPLET *to, const DAT_LMR_TRIPLET *from, uint32_t count)
{
	assert_in_range(count, 0, 2);
	for (uint32_t i = 0; i < count; i++) { /* without what is between the members */
		to[i].lmr_context = name_key(from[i].lmr_context);
		to[i].virtual_address = from[i].virtual_address;
		to[i].segment_length = from[i].segment_length;
	}
}

static void read_requests(struct books *books, struct core_ep *ep)
{
	size_t n = 0;

	for (uint64_t i = ep->req.head; i != ep->req.tail; i++, n++) {
		const struct core_req *req = core_req_at(&ep->req, i);

		assert_in_range(n, 0, SLOTS - 1);
		books->req[n].op = req->op;
		books->req[n].flags = req->flags;
		books->req[n].segments = req->segments;
		books->req[n].len = req->len;
		books->req[n].cookie = req->cookie.as_64;
		books->req[n].sequence = req->sequence;
		books->req[n].is_done = req->is_done;
		books->req[n].is_bind = req->binding;
		books->req[n].word[0] = req->transport.word[0];
		books->req[n].word[1] = req->transport.word[1];
		if (req->op != CORE_OP_BIND)
			copy_iov(books->req[n].iov, req->iov, req->segments);
	}
}

static void read_receives(struct books *books, const struct core_ep *ep)
{
	size_t n = 0;

	for (uint64_t i = ep->recv.head; i != ep->recv.tail; i++, n++) {
		const struct core_wqe *wqe = &ep->recv.slots[i & ep->recv.mask];

		assert_in_range(n, 0, SLOTS - 1);
		books->recv[n].flags = wqe->flags;
		books->recv[n].segments = wqe->segments;
		books->recv[n].len = wqe->len;
		books->recv[n].cookie = wqe->cookie.as_64;
		copy_iov(books->recv[n].iov, wqe->iov, wqe->segments);
	}
}

/* Ends the way, if it has not ended. */
static void read_books(struct books *books)
{
	const struct vrb_conn *conn = conn_of(&rig.a);
	struct core_ep *ep = inner(&rig.a);

	end_way(&rig.a);
	memset(books, 0, sizeof(*books));
	books->sq_posted = conn->sq_posted;
	books->sq_done = conn->sq_done;
	books->sq_seen = conn->sq_seen;
	books->post_next = conn->post_next;
	books->reap_next = conn->reap_next;
	books->recv_next = conn->recv_next;
	books->signalled = conn->signalled;
	books->recv_out = conn->recv_out;
	books->req_head = ep->req.head;
	books->req_tail = ep->req.tail;
	books->recv_head = ep->recv.head;
	books->recv_tail = ep->recv.tail;
	read_requests(books, ep);
	read_receives(books, ep);
}

/* What was in the slots before must not matter. */
static void spoil_slots(void)
{
	struct core_ep *ep = inner(&rig.a);

	assert_true(ep->req.head == ep->req.tail && ep->recv.head == ep->recv.tail);
	for (uint32_t i = 0; i < SLOTS; i++) {
		struct core_req *req = &ep->req.slots[i];
		struct core_wqe *wqe = &ep->recv.slots[i];

		req->flags = DAT_COMPLETION_SUPPRESS_FLAG;
		req->segments = 2;
		req->binding = (struct core_binding *)req;
		req->sequence = 12345;
		req->is_done = true;
		memset(&req->transport, 0x7f, sizeof(req->transport));
		memset(req->iov, 0x7f, sizeof(*req->iov));
		wqe->flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
		wqe->segments = 2;
		memset(wqe->iov, 0x7f, sizeof(*wqe->iov));
	}
}

struct told {
	uint64_t cookie, status, len;
	DAT_EVENT_NUMBER number;
};

/* All that happened, one way and the other. */
struct course {
	DAT_RETURN rets[3];
	struct told a[16], b[16];
	unsigned a_count, b_count;
	struct books before, after, end;
	unsigned posts;
};

static void tell_event(struct told *told, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *data = &event->event_data.dto_completion_event_data;
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *bind =
		&event->event_data.rmr_completion_event_data;

	told->number = event->event_number;
	if (event->event_number == DAT_RMR_BIND_COMPLETION_EVENT) {
		told->cookie = bind->user_cookie.as_64;
		told->status = bind->status;
		return;
	}
	told->cookie = data->user_cookie.as_64;
	told->status = data->status;
	told->len = data->transfered_length;
}

static unsigned take_all(DAT_EVD_HANDLE evd, struct told *told, unsigned count)
{
	DAT_EVENT event;

	while (take(evd, &event)) {
		assert_in_range(count, 0, 15);
		tell_event(&told[count++], &event);
	}
	return count;
}

static void take_both(struct course *course)
{
	course->a_count = take_all(rig.a.dto, course->a, course->a_count);
	course->b_count = take_all(rig.b.dto, course->b, course->b_count);
	course->a_count = take_all(rig.a.dto, course->a, course->a_count);
}

/* Two Receives and three requests are outstanding on a when the call comes; then one more is
 * posted, and all are carried out. */
static void run(struct course *course, const struct odd_call *call, bool is_express)
{
	unsigned before;

	memset(course, 0, sizeof(*course));
	before = fake_posts();
	assert_int_equal(recv_len(&rig.a, 64, 101), DAT_SUCCESS);
	assert_int_equal(recv_len(&rig.a, 65, 102), DAT_SUCCESS);
	assert_int_equal(write_len(&rig.a, 20, 201), DAT_SUCCESS);
	expect(&rig.a, 201, 20);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(send_len(&rig.a, 30 + i, 202 + i), DAT_SUCCESS);
	assert_int_equal(is_on(rig.a.ep), is_express);
	course->rets[0] = call->call(call->arg);
	assert_int_equal(is_on(rig.a.ep), is_express && !call->ends);
	assert_int_equal(course->rets[0] & ~DAT_CLASS_ERROR, call->ret);
	course->rets[1] = write_len(&rig.a, 40, 205);
	course->rets[2] = recv_len(&rig.a, 66, 103);
	read_books(&course->before);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(recv_len(&rig.b, MESSAGE_MOST, 301 + i), DAT_SUCCESS);
	take_both(course);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(send_len(&rig.b, i == 2 ? 0 : 5, 401 + i), DAT_SUCCESS);
	take_both(course);
	course->posts = fake_posts() - before;
	read_books(&course->after);
}

static void compare_told(const struct told *one, unsigned one_count, const struct told *other,
			 unsigned other_count)
{
	assert_int_equal(one_count, other_count);
	for (unsigned i = 0; i < one_count; i++) {
		assert_int_equal(one[i].number, other[i].number);
		assert_int_equal(one[i].cookie, other[i].cookie);
		assert_int_equal(one[i].status, other[i].status);
		assert_int_equal(one[i].len, other[i].len);
	}
}

/* Up to here; it may begin again when the endpoint is idle, watermarks being no reason any more. */
static void begin_again(void)
{
	assert_int_equal(
		core_ep_set_watermark(rig.a.ep, DAT_WATERMARK_INFINITE, DAT_WATERMARK_INFINITE),
		DAT_SUCCESS);
	assert_false(is_on(rig.a.ep));
	assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
	expect(&rig.a, 1, 8);
	assert_true(is_on(rig.a.ep));
	assert_int_equal(write_len(&rig.a, 9, 2), DAT_SUCCESS);
	expect_at_once(&rig.a, 2, 9);
	for (uint64_t i = 0; i < ROOM; i++)
		assert_int_equal(write_len(&rig.a, 9, i), DAT_SUCCESS);
	for (uint64_t i = 0; i < ROOM; i++)
		expect_at_once(&rig.a, i, 9);
}

static void course_of(struct course *course, const struct odd_call *call, bool is_express)
{
	setup(NULL);
	make_odd();
	spoil_slots();
	if (!is_express) {
		end_way(&rig.a);
		end_way(&rig.b);
		conn_of(&rig.a)->is_direct = false;
		conn_of(&rig.b)->is_direct = false;
	}
	run(course, call, is_express);
	if (is_express)
		begin_again();
	read_books(&course->end);
	teardown(NULL);
}

/*
 * DTO-37 DTO-86 DTO-87: in the middle of others each has the code, the events and their order, and
 * leaves the books as it does where there is no express way.
 */
static void post__not_usual__as_without_the_way(void **state)
{
	static struct course with, without;

	(void)state;
	for (size_t i = 0; i < sizeof(odd_calls) / sizeof(odd_calls[0]); i++) {
		const struct odd_call *call = &odd_calls[i];

		print_message("%s\n", call->name);
		course_of(&with, call, true);
		course_of(&without, call, false);
		for (size_t j = 0; j < 3; j++)
			assert_int_equal(with.rets[j], without.rets[j]);
		assert_memory_equal(&with.before, &without.before, sizeof(with.before));
		assert_memory_equal(&with.after, &without.after, sizeof(with.after));
		assert_int_equal(with.posts, without.posts);
		compare_told(with.a, with.a_count, without.a, without.a_count);
		compare_told(with.b, with.b_count, without.b, without.b_count);
		assert_int_equal(with.a_count, 7 + call->events);
	}
}

/* When another region was posted from, that one is known from then on. */
static void post__another_region__known_from_then_on(void **state)
{
	(void)state;
	make_odd();
	for (int call = 1; call <= 2; call++) {
		assert_int_equal(post_other(call), DAT_SUCCESS);
		if (call == 2)
			assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
		expect(&rig.a, ODD_COOKIE, call == 2 ? 8 : 32);
		assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
		expect(&rig.a, 1, 8);
		assert_true(is_on(rig.a.ep));
		assert_int_equal(post_other(call), DAT_SUCCESS);
		assert_int_equal(is_on(rig.a.ep), call == 2);
		assert_int_equal(
			(call == 2 ? device.recv_sge : device.send_sge).lkey,
			core_mem_slot(&inner(&rig.a)->ia->mem, odd.other_key)->local_keys[0]);
		if (call == 2) {
			expect(&rig.b, 1, 8);
			assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
		}
		expect(&rig.a, ODD_COOKIE, call == 2 ? 8 : 32);
	}
}

/* LMR-FREE-06: the region of the last posts is gone */
static void post__known_region_freed__refused(void **state)
{
	DAT_LMR_CONTEXT key;
	DAT_LMR_HANDLE lmr;

	(void)state;
	lmr = make_region(RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &key);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(post_seg(1, key, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
		expect(&rig.a, ODD_COOKIE, 8);
		assert_int_equal(post_seg(2, key, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
		assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
		expect(&rig.a, ODD_COOKIE, 8);
		expect(&rig.b, 1, 8);
		assert_true(is_on(rig.a.ep));
	}
	assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
	for (int call = 0; call <= 2; call++)
		assert_int_equal(post_seg(call, key, (uintptr_t)rig.memory, 8),
				 DAT_CLASS_ERROR | (call == 2 ? NO_KEY(WRITE) : NO_KEY(READ)));
	assert_int_equal(write_len(&rig.a, 8, 3), DAT_SUCCESS);
	expect(&rig.a, 3, 8);
}

/* Requests from one region, Receives into another, which is little: no byte behind it is good. */
static void post__regions_of_their_own__each_with_its_key_and_end(void **state)
{
	struct core_mem *mem = &inner(&rig.a)->ia->mem;

	(void)state;
	make_odd();
	for (int call = 0; call <= 2; call++) {
		DAT_LMR_CONTEXT other = call == 2 ? rig.lkey : odd.other_key;
		DAT_LMR_CONTEXT little = odd.little_key;

		for (int i = 0; i < 3; i++) {
			/* the other queue's last post is in another region */
			assert_int_equal(
				post_seg(call == 2 ? 1 : 2, other, (uintptr_t)rig.memory, 8),
				DAT_SUCCESS);
			if (call != 2)
				assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
			expect(&rig.a, ODD_COOKIE, 8);
			if (call != 1)
				assert_int_equal(call ? send_len(&rig.b, 8, 2)
						      : recv_len(&rig.b, 64, 2),
						 DAT_SUCCESS);
			assert_int_equal(post_seg(call, little, (uintptr_t)rig.memory, 64),
					 DAT_SUCCESS);
			assert_int_equal(is_on(rig.a.ep), i || call);
			assert_int_equal((call == 2 ? device.recv_sge : device.send_sge).lkey,
					 core_mem_slot(mem, little)->local_keys[0]);
			expect(&rig.a, ODD_COOKIE, call == 2 ? 8 : 64);
			assert_true(is_on(rig.a.ep));
			for (DAT_VLEN len = 65; len < MESSAGE_MOST; len *= 2)
				assert_int_equal(post_seg(call, little, (uintptr_t)rig.memory, len),
						 DAT_CLASS_ERROR | BAD_ARG(3));
			assert_int_equal(post_seg(call, little, (uintptr_t)rig.memory + 1, 64),
					 DAT_CLASS_ERROR | BAD_ARG(3));
			expect_none(rig.a.dto);
			take_all(rig.b.dto, (struct told[16]){{0}}, 0);
		}
	}
}

/* Another region in the place of the known one: it counts, and not what was there before. */
static void post__place_of_the_known_region_used_again__its_own_bounds(void **state)
{
	const uint32_t mask = CORE_MEM_MAX - 1;
	DAT_LMR_CONTEXT known, key = 0;
	DAT_LMR_HANDLE lmr;
	unsigned tries = 0;

	(void)state;
	lmr = make_region(RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &known);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(post_seg(1, known, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
		expect(&rig.a, ODD_COOKIE, 8);
	}
	do {
		assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
		lmr = make_region(64, DAT_MEM_PRIV_ALL_FLAG, &key);
	} while ((key & mask) != (known & mask) && ++tries < 1000);
	assert_int_equal(key & mask, known & mask);
	assert_true(is_on(rig.a.ep));
	for (int call = 0; call < 2; call++)
		assert_int_equal(post_seg(call, key, (uintptr_t)rig.memory, 65),
				 DAT_CLASS_ERROR | BAD_ARG(3));
	assert_true(is_on(rig.a.ep));
}

/* DTO-85: what was good for the zone before is asked for again. */
static void ep_modify__another_zone__known_region_refused(void **state)
{
	DAT_EP_PARAM param;

	(void)state;
	let_go();
	rig_part(&rig);
	rig_reset(&rig);
	assert_int_equal(core_pz_create(rig.ia, &param.pz_handle), DAT_SUCCESS);
	assert_int_equal(core_ep_modify(rig.a.ep, DAT_EP_FIELD_PZ_HANDLE, &param), DAT_SUCCESS);
	join();
	fake_hold(true);
	own_all();
	assert_int_equal(send_len(&rig.a, 8, 1),
			 DAT_CLASS_ERROR | DAT_PROTECTION_VIOLATION | DAT_PROTECTION_READ);
	assert_int_equal(write_len(&rig.a, 8, 1),
			 DAT_CLASS_ERROR | DAT_PROTECTION_VIOLATION | DAT_PROTECTION_READ);
	assert_int_equal(recv_len(&rig.a, 8, 1),
			 DAT_CLASS_ERROR | DAT_PROTECTION_VIOLATION | DAT_PROTECTION_WRITE);
}

/* The core knows the region of a Receive that was refused for want of room; the way does not. */
static void post_recv__known_to_the_core_alone__in_order(void **state)
{
	struct books books;

	(void)state;
	make_odd();
	for (uint64_t i = 0; i < ROOM; i++)
		assert_int_equal(recv_len(&rig.a, 64, 10 + i), DAT_SUCCESS);
	assert_int_equal(post_other(2),
			 DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_TEP);
	assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
	expect(&rig.a, 10, 8);
	assert_true(is_on(rig.a.ep));
	assert_int_equal(post_other(2), DAT_SUCCESS);
	read_books(&books);
	assert_int_equal(books.recv_out, ROOM);
	assert_int_equal(books.recv_next, inner(&rig.a)->recv.tail);
	assert_int_equal(device.recv_sge.length, 32);
	for (uint64_t i = 1; i <= ROOM; i++)
		assert_int_equal(send_len(&rig.b, 8, i), DAT_SUCCESS);
	for (uint64_t i = 1; i < ROOM; i++)
		expect(&rig.a, 10 + i, 8);
	expect(&rig.a, ODD_COOKIE, 8);
}

/* It is on again when all that was suppressed is done; on another connection for the thread that
 * has the endpoint for its own. */
static void vrb_express_begin__nothing_to_complete__on_all_the_same(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
		assert_int_equal(write_flags(DAT_COMPLETION_SUPPRESS_FLAG), DAT_SUCCESS);
		assert_false(is_on(rig.a.ep));
		expect(&rig.a, 1, 8);
		assert_false(is_on(rig.a.ep));
		expect_none(rig.a.dto); /* and finds that it is done */
		assert_true(is_on(rig.a.ep));
	}
	let_go();
	rig_part(&rig);
	rig_reset(&rig);
	join();
	fake_hold(true);
	own_all();
	assert_false(CORE_LOCK_IS_OWNED && is_on(rig.a.ep)); /* the provider's thread made it */
	assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
	expect(&rig.a, 1, 8);
	assert_true(is_on(rig.a.ep));
}

/* The provider's thread sees that somebody posts, and polls. */
static void calls__on_the_way__seen_by_the_service_thread(void **state)
{
	struct vrb_adapter *adapter = conn_of(&rig.a)->adapter;
	struct vrb_cq *cq = conn_of(&rig.a)->cq;

	(void)state;
	atomic_store(&adapter->has_posted, false);
	atomic_store(&cq->has_polled, false);
	assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
	assert_true(atomic_load(&adapter->has_posted));
	assert_false(atomic_load(&cq->has_polled));
	expect_at_once(&rig.a, 1, 8);
	assert_true(atomic_load(&cq->has_polled));
}

/* A device whose posts and polls may be system calls has no express way. */
static void calls__unknown_device__not_on_the_way(void **state)
{
	static const uint32_t vendors[] = {0, VRB_VENDOR_RXE, VRB_VENDOR_SIW};

	(void)state;
	for (size_t i = 0; i < sizeof(vendors) / sizeof(vendors[0]); i++) {
		open_rig();
		rig_close(&rig);
		fake_be_vendor(vendors[i]);
		rig.qual = 0;
		assert_int_equal(rig_open(&rig), DAT_SUCCESS);
		assert_int_equal(rig_make(&rig), DAT_SUCCESS);
		remake(&rig.a, rig.a.dto, rig.a.dto, small);
		join();
		settle();
		for (uint64_t j = 0; j < SLOTS; j++) {
			unsigned cancellable = fake_cancellable();

			assert_int_equal(write_len(&rig.a, 8, j), DAT_SUCCESS);
			assert_false(is_on(rig.a.ep));
			expect(&rig.a, j, 8);
			if (!vendors[i])
				assert_int_equal(fake_cancellable(), cancellable);
		}
		/* who alone polls in the kernel takes no dequeue of its own */
		assert_int_equal(atomic_load(&inner(&rig.a)->ia->express) != NULL, vendors[i] != 0);
		teardown(state);
	}
}

/* A Receive with more segments that was posted before the way began stays what it is. */
static void post_recv__behind_one_of_two_segments__both_in_order(void **state)
{
	struct core_ep *ep = inner(&rig.a);
	struct books books;

	(void)state;
	spoil_slots();
	end_way(&rig.a);
	assert_int_equal(post_two(2), DAT_SUCCESS);
	assert_true(is_on(rig.a.ep));
	assert_int_equal(recv_len(&rig.a, 64, 5), DAT_SUCCESS);
	assert_true(is_on(rig.a.ep));
	read_books(&books);
	assert_int_equal(books.recv[0].segments, 2);
	assert_int_equal(books.recv[0].iov[0].segment_length, 8);
	assert_int_equal(books.recv[0].iov[1].segment_length, 16);
	assert_int_equal(books.recv[1].segments, 1);
	assert_int_equal(books.recv[1].flags, 0);
	assert_int_equal(books.recv[1].iov[0].segment_length, 64);
	assert_int_equal(books.recv_next, ep->recv.tail);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(send_len(&rig.b, 20, i), DAT_SUCCESS);
	expect(&rig.a, ODD_COOKIE, 20);
	expect(&rig.a, 5, 20);
}

/* What is next is complete when it is asked for, by whoever tells a waiter of it. */
static void vrb_express_settle_recv__posted_on_the_way__complete(void **state)
{
	struct core_recv_queue *queue = &inner(&rig.a)->recv;
	const struct core_wqe *wqe = &queue->slots[queue->head & queue->mask];

	(void)state;
	spoil_slots();
	assert_int_equal(recv_len(&rig.a, 64, 5), DAT_SUCCESS);
	vrb_express_settle_recv(inner(&rig.a));
	assert_int_equal(wqe->flags, 0);
	assert_int_equal(wqe->segments, 1);
	assert_int_equal(wqe->iov[0].segment_length, 64);
	assert_int_equal(wqe->cookie.as_64, 5);
}

/* --- handles --- */

static void calls__wrong_or_dead_handle__refused(void **state)
{
	const DAT_PROVIDER *calls = CALLS(rig.a.ep);
	DAT_RETURN bad_ep = DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP;
	DAT_LMR_TRIPLET seg = rig_seg(&rig, 0, 8);
	DAT_RMR_TRIPLET to = remote_seg(HALF, 8);
	DAT_EVD_HANDLE evd = make_evd(8, DAT_HANDLE_NULL);
	DAT_EP_HANDLE handles[2];
	DAT_EVENT event;

	(void)state;
	handles[0] = rig.a.dto;
	handles[1] = rig.b.ep;
	own(evd);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(calls->ep_post_send_func(handles[i], 1, &seg, cookie_of(1), 0),
				 bad_ep);
		assert_int_equal(calls->ep_post_recv_func(handles[i], 1, &seg, cookie_of(1), 0),
				 bad_ep);
		assert_int_equal(
			calls->ep_post_rdma_write_func(handles[i], 1, &seg, cookie_of(1), &to, 0),
			bad_ep);
		if (i == 0) {
			assert_int_equal(core_ep_free(rig.b.ep), DAT_SUCCESS);
			assert_false(is_on(rig.b.ep));
		}
	}
	assert_int_equal(calls->evd_dequeue_func(rig.a.ep, &event),
			 DAT_CLASS_ERROR | DAT_INVALID_HANDLE);
	assert_true(is_on(evd));
	assert_int_equal(core_evd_free(evd), DAT_SUCCESS);
	assert_false(is_on(evd));
	assert_int_equal(calls->evd_dequeue_func(evd, &event),
			 DAT_CLASS_ERROR | DAT_INVALID_HANDLE);
}

/* --- it begins only when nothing else is to be known --- */

static void expect_no_begin(bool begins)
{
	struct core_handle *handle = cell(rig.a.ep);

	core_lock_acquire(&handle->lock);
	vrb_express_begin(inner(&rig.a));
	assert_int_equal(handle->express != 0, begins);
	core_ep_express_end(inner(&rig.a));
	core_lock_release(&handle->lock);
}

#define WITH(member, value)                                                                        \
	do {                                                                                       \
		__typeof__(member) before_ = (member);                                             \
                                                                                                   \
		expect_no_begin(true);                                                             \
		(member) = (value);                                                                \
		expect_no_begin(false);                                                            \
		(member) = before_;                                                                \
	} while (0)

static void vrb_express_begin__queues_not_calm__does_not(void **state)
{
	struct vrb_conn *conn = conn_of(&rig.a);
	struct core_ep *ep = inner(&rig.a);

	(void)state;
	end_way(&rig.a);
	WITH(ep->req.head, ep->req.tail - 1);
	WITH(conn->post_next, ep->req.tail - 1);
	WITH(conn->reap_next, ep->req.tail - 1);
	WITH(conn->sq_done, conn->sq_posted - 1);
	WITH(conn->sq_seen, conn->sq_posted - 1);
	WITH(conn->signalled, 1);
	WITH(conn->has_marker, true);
	WITH(conn->is_binding, true);
	WITH(conn->retiring, (struct vrb_window *)conn);
	WITH(conn->is_receiving, false);
	WITH(conn->recv_next, ep->recv.tail - 1);
	WITH(conn->recv_out, 1);
	WITH(conn->is_direct, false);
	WITH(conn->state, VRB_CLOSING);
	WITH(conn->is_graceful, true);
	WITH(conn->sq_size, ep->req.capacity);
}

static void core_ep_express_begin__endpoint_not_usual__does_not(void **state)
{
	struct core_ep *ep = inner(&rig.a);

	(void)state;
	end_way(&rig.a);
	WITH(ep->state, DAT_EP_STATE_DISCONNECT_PENDING);
	WITH(ep->is_breaking, true);
	WITH(ep->request_evd, NULL);
	WITH(ep->attr.max_request_iov, 0);
	WITH(ep->attr.max_rdma_write_iov, 0);
	WITH(ep->attr.max_recv_iov, 0);
	WITH(ep->is_soft_armed, true);
	WITH(ep->hard_watermark, 3);
}

/* Asked for again while it is on, it goes on. */
static void vrb_express_begin__on_already__goes_on(void **state)
{
	struct core_handle *handle = cell(rig.a.ep);

	(void)state;
	assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
	core_lock_acquire(&handle->lock);
	vrb_express_begin(inner(&rig.a));
	core_lock_release(&handle->lock);
	assert_true(is_on(rig.a.ep));
	expect_at_once(&rig.a, 1, 8);
}

/* --- errors --- */

/* Two Receives, and as many Sends that find none, on a. */
static void outstanding(unsigned sends)
{
	spoil_slots();
	assert_int_equal(recv_len(&rig.a, 64, 101), DAT_SUCCESS);
	assert_int_equal(recv_len(&rig.a, 64, 102), DAT_SUCCESS);
	for (unsigned i = 0; i < sends; i++)
		assert_int_equal(send_len(&rig.a, 8, 201 + i), DAT_SUCCESS);
	assert_true(is_on(rig.a.ep));
}

static void expect_end(DAT_EVENT_NUMBER a, DAT_EVENT_NUMBER b)
{
	rig_expect_conn(&rig.a, a);
	rig_expect_conn(&rig.b, b);
	rig_no_event(rig.a.dto);
	rig_no_event(rig.a.conn);
	rig_no_event(rig.b.conn);
	assert_false(is_on(rig.a.ep));
}

static void expect_all_flushed(unsigned sends)
{
	for (unsigned i = 0; i < sends; i++)
		expect_flushed(&rig.a, 201 + i);
	expect_flushed(&rig.a, 101);
	expect_flushed(&rig.a, 102);
}

static void again(void)
{
	rig_reset(&rig);
	join();
	settle();
	assert_true(is_on(rig.a.ep));
	assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
	expect_at_once(&rig.a, 1, 8);
}

/* EP-STATE-74: the device takes a request no more; with others outstanding, and alone */
static void post__refused_by_the_device__broken_once(void **state)
{
	(void)state;
	for (unsigned sends = 0; sends < 3; sends++) {
		struct books books;

		outstanding(sends);
		fake_fail_next("ibv_post_send");
		assert_int_equal(sends == 1 ? write_len(&rig.a, 8, 201 + sends)
					    : send_len(&rig.a, 8, 201 + sends),
				 DAT_SUCCESS);
		assert_string_equal(fake_failed(), "ibv_post_send");
		fake_fail_at(0);
		assert_false(is_on(rig.a.ep));
		assert_int_equal(conn_of(&rig.a)->state, VRB_CLOSING);
		assert_int_equal(conn_of(&rig.a)->sq_seen, conn_of(&rig.a)->sq_posted);
		read_books(&books);
		assert_int_equal(books.recv_out, 2);
		let_go();
		expect_all_flushed(sends + 1);
		expect_end(DAT_CONNECTION_EVENT_BROKEN, DAT_CONNECTION_EVENT_DISCONNECTED);
		again();
	}
}

/* The same for a Receive: those that the device has are waited for, and no more. */
static void post_recv__refused_by_the_device__broken_once(void **state)
{
	(void)state;
	outstanding(2);
	fake_fail_next("ibv_post_recv");
	assert_int_equal(recv_len(&rig.a, 64, 103), DAT_SUCCESS);
	assert_string_equal(fake_failed(), "ibv_post_recv");
	fake_fail_at(0);
	assert_false(is_on(rig.a.ep));
	assert_int_equal(conn_of(&rig.a)->state, VRB_CLOSING);
	assert_int_equal(conn_of(&rig.a)->recv_out, 2);
	assert_int_equal(conn_of(&rig.a)->signalled, 2);
	let_go();
	expect_all_flushed(2);
	expect_flushed(&rig.a, 103);
	expect_end(DAT_CONNECTION_EVENT_BROKEN, DAT_CONNECTION_EVENT_DISCONNECTED);
	again();
}

/* DTO-48 DTO-65: of the oldest request, or of one behind it */
static void completion__error__told_and_the_rest_flushed(void **state)
{
	(void)state;
	for (unsigned good = 0; good < 3; good++) {
		DAT_EVENT event;

		outstanding(4);
		for (unsigned i = 0; i < good; i++)
			assert_int_equal(recv_len(&rig.b, 64, i), DAT_SUCCESS);
		fake_status(IBV_WC_RETRY_EXC_ERR);
		assert_int_equal(recv_len(&rig.b, 64, 9), DAT_SUCCESS);
		device.most = good == 1 ? VRB_POLL_BATCH : 1;
		for (unsigned i = 0; i < good; i++)
			expect(&rig.a, 201 + i, 8);
		assert_true(take(rig.a.dto, &event));
		check_event(&event, rig.a.dto, rig.a.ep, 201 + good, DAT_DTO_ERR_TRANSPORT, 0);
		assert_false(is_on(rig.a.ep));
		let_go();
		for (unsigned i = good + 1; i < 4; i++)
			expect_flushed(&rig.a, 201 + i);
		expect_flushed(&rig.a, 101);
		expect_flushed(&rig.a, 102);
		expect_end(DAT_CONNECTION_EVENT_BROKEN, DAT_CONNECTION_EVENT_DISCONNECTED);
		while (rig_event(rig.b.dto).event_data.dto_completion_event_data.status ==
		       DAT_DTO_SUCCESS)
			;
		again();
	}
}

/* A Receive that a message does not fit into. */
static void completion__error_of_a_receive__told_and_the_rest_flushed(void **state)
{
	DAT_EVENT event;

	(void)state;
	outstanding(2);
	assert_int_equal(send_len(&rig.b, 65, 7), DAT_SUCCESS);
	device.most = 1;
	assert_true(take(rig.a.dto, &event));
	check_event(&event, rig.a.dto, rig.a.ep, 101, DAT_DTO_ERR_LOCAL_LENGTH, 0);
	assert_false(is_on(rig.a.ep));
	let_go();
	expect_flushed(&rig.a, 201);
	expect_flushed(&rig.a, 202);
	expect_flushed(&rig.a, 102);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_BROKEN);
	assert_int_not_equal(rig_event(rig.b.conn).event_number, 0);
	rig_expect_dto(&rig.b, 7, DAT_DTO_ERR_REMOTE_RESPONDER);
	again();
}

/* DTO-56: a status that says little; the core knows whether the memory was freed */
static void completion__says_little__memory_is_looked_at(void **state)
{
	(void)state;
	for (int is_freed = 0; is_freed < 2; is_freed++) {
		DAT_LMR_CONTEXT key;
		DAT_LMR_HANDLE lmr;
		DAT_EVENT event;

		lmr = make_region(RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &key);
		assert_int_equal(post_seg(1, key, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
		expect(&rig.a, ODD_COOKIE, 8);
		spoil_slots();
		assert_int_equal(post_seg(0, key, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
		assert_true(is_on(rig.a.ep));
		if (is_freed)
			assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
		fake_status(IBV_WC_LOC_QP_OP_ERR);
		assert_int_equal(recv_len(&rig.b, 64, 9), DAT_SUCCESS);
		assert_true(take(rig.a.dto, &event));
		check_event(&event, rig.a.dto, rig.a.ep, ODD_COOKIE,
			    is_freed ? DAT_DTO_ERR_LOCAL_PROTECTION : DAT_DTO_ERR_LOCAL_EP, 0);
		let_go();
		expect_end(DAT_CONNECTION_EVENT_BROKEN, DAT_CONNECTION_EVENT_DISCONNECTED);
		expect_flushed(&rig.b, 9);
		if (!is_freed)
			assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
		again();
	}
}

/* The same for a Receive. */
static void completion__of_a_receive_says_little__memory_is_looked_at(void **state)
{
	(void)state;
	for (int is_freed = 0; is_freed < 2; is_freed++) {
		DAT_LMR_CONTEXT key;
		DAT_LMR_HANDLE lmr;
		DAT_EVENT event;

		lmr = make_region(RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &key);
		assert_int_equal(post_seg(2, key, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
		assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
		expect(&rig.a, ODD_COOKIE, 8);
		expect(&rig.b, 1, 8);
		spoil_slots();
		assert_int_equal(post_seg(2, key, (uintptr_t)rig.memory, 8), DAT_SUCCESS);
		assert_int_equal(recv_len(&rig.a, 64, 5), DAT_SUCCESS);
		end_way(&rig.a);
		device.more[0] =
			(struct ibv_wc){.wr_id = device.recv.wr_id, .status = IBV_WC_GENERAL_ERR};
		assert_int_equal(write_len(&rig.b, 8, 3), DAT_SUCCESS);
		expect(&rig.b, 3, 8);
		if (is_freed)
			assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
		device.more_count = 1;
		assert_true(take(rig.a.dto, &event));
		check_event(&event, rig.a.dto, rig.a.ep, ODD_COOKIE,
			    is_freed ? DAT_DTO_ERR_LOCAL_PROTECTION : DAT_DTO_ERR_TRANSPORT, 0);
		let_go();
		expect_flushed(&rig.a, 5);
		expect_end(DAT_CONNECTION_EVENT_BROKEN, DAT_CONNECTION_EVENT_DISCONNECTED);
		if (!is_freed)
			assert_int_equal(core_lmr_free(lmr), DAT_SUCCESS);
		again();
	}
}

/* A device that tells of the second one first: the first is told first all the same. */
static void completion__of_a_later_request_first__in_order(void **state)
{
	struct ibv_wc wc[2];

	(void)state;
	for (uint64_t i = 0; i < 2 * SLOTS; i++) {
		assert_int_equal(write_len(&rig.a, 8, 100 + i), DAT_SUCCESS);
		assert_int_equal(write_len(&rig.a, 9, 200 + i), DAT_SUCCESS);
		assert_int_equal(device.real.poll_cq(conn_of(&rig.a)->cq->cq, 2, wc), 2);
		device.more[0] = wc[1];
		device.more[1] = wc[0];
		device.more_count = 1;
		expect_none(rig.a.dto);
		device.more[0] = wc[0];
		device.more_count = 1;
		expect(&rig.a, 100 + i, 8);
		expect(&rig.a, 200 + i, 9);
		assert_int_equal(write_len(&rig.a, 10, 300 + i), DAT_SUCCESS);
		expect(&rig.a, 300 + i, 10);
		assert_true(is_on(rig.a.ep));
	}
}

/* What is left of a connection that had the same place in the table. */
static void completion__of_an_old_connection__nobodys(void **state)
{
	struct core_ep *ep = inner(&rig.a);
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
	uint32_t old = conn_of(&rig.a)->key ^ (1u << VRB_KEY_INDEX_BITS);

	(void)state;
	outstanding(2);
	for (int i = 0; i < 2; i++) {
		wc.wr_id = i ? vrb_work_id(VRB_WORK_RECV, old,
					   vrb_recv_place(&ep->recv, ep->recv.head))
			     : vrb_work_id(VRB_WORK_REQUEST, old, (uint32_t)ep->req.head);
		device.more[0] = wc;
		device.more_count = 1;
		expect_none(rig.a.dto);
		assert_int_equal(ep->req.tail - ep->req.head, 2);
		assert_int_equal(ep->recv.tail - ep->recv.head, 2);
		/* nobody has to wait for us */
		assert_int_equal(atomic_load(&cell(rig.a.ep)->lock.inside), 0);
		assert_int_equal(atomic_load(&cell(rig.a.dto)->lock.inside), 0);
	}
	assert_true(is_on(rig.a.ep));
}

/* EP-DISC-09 EP-DISC-10: abruptly, with requests and Receives outstanding; nothing lies about them
 */
static void ep_disconnect__abrupt__all_flushed_in_order(void **state)
{
	(void)state;
	outstanding(4);
	assert_int_equal(core_ep_disconnect(rig.a.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	assert_false(is_on(rig.a.ep));
	let_go();
	expect_all_flushed(4);
	expect_end(DAT_CONNECTION_EVENT_DISCONNECTED, DAT_CONNECTION_EVENT_DISCONNECTED);
	again();
}

/* EP-DISC-13 EP-DISC-15 EP-DISC-17: gracefully: what was posted is carried out first, and nothing
 * more is taken. */
static void ep_disconnect__graceful__all_done_before(void **state)
{
	(void)state;
	outstanding(3);
	assert_int_equal(core_ep_disconnect(rig.a.ep, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
	assert_false(is_on(rig.a.ep));
	assert_int_not_equal(send_len(&rig.a, 8, 9), DAT_SUCCESS);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(recv_len(&rig.b, 64, 301 + i), DAT_SUCCESS);
	for (uint64_t i = 0; i < 3; i++) {
		expect(&rig.a, 201 + i, 8);
		expect(&rig.b, 301 + i, 8);
	}
	let_go();
	expect_flushed(&rig.a, 101);
	expect_flushed(&rig.a, 102);
	expect_end(DAT_CONNECTION_EVENT_DISCONNECTED, DAT_CONNECTION_EVENT_DISCONNECTED);
	again();
}

/* EP-DISC-33 */
static void peer__ends__all_flushed_in_order(void **state)
{
	(void)state;
	outstanding(3);
	let_go();
	assert_int_equal(core_ep_disconnect(rig.b.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	expect_all_flushed(3);
	expect_end(DAT_CONNECTION_EVENT_DISCONNECTED, DAT_CONNECTION_EVENT_DISCONNECTED);
	again();
}

/* The device says that the queue pair is broken. */
static void qp_event__of_an_error__all_flushed(void **state)
{
	(void)state;
	outstanding(3);
	let_go();
	fake_async(IBV_EVENT_QP_FATAL, conn_of(&rig.a)->qp);
	expect_all_flushed(3);
	expect_end(DAT_CONNECTION_EVENT_BROKEN, DAT_CONNECTION_EVENT_DISCONNECTED);
	again();
}

/* EP-FREE-19: no completion comes of it, and the peer is told */
static void ep_free__outstanding__nothing_left(void **state)
{
	(void)state;
	outstanding(4);
	assert_int_equal(core_ep_free(rig.a.ep), DAT_SUCCESS);
	assert_false(is_on(rig.a.ep));
	let_go();
	rig_expect_conn(&rig.b, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_no_event(rig.a.dto);
}

/* Teardown looks for what is left */
static void ia_close__outstanding__nothing_left(void **state)
{
	(void)state;
	outstanding(4);
	assert_int_equal(send_len(&rig.b, 8, 1), DAT_SUCCESS);
}

/* --- dispatchers --- */

static DAT_EVENT software_event(void *pointer)
{
	DAT_EVENT event;

	memset(&event, 0, sizeof(event));
	event.event_number = DAT_SOFTWARE_EVENT;
	event.event_data.software_event_data.pointer = pointer;
	return event;
}

static void use_software_evd(DAT_COUNT qlen)
{
	open_rig();
	rig.a.dto = make_evd(qlen, DAT_HANDLE_NULL);
	remake(&rig.a, rig.a.dto, rig.a.dto, small);
	join();
	settle();
}

/* An event that was queued comes before a completion that the device has. */
static void evd_post_se__before_a_completion__first(void **state)
{
	DAT_EVENT event, told;

	(void)state;
	use_software_evd(16);
	for (uint64_t i = 0; i < 20; i++) {
		assert_int_equal(write_len(&rig.a, 8, i), DAT_SUCCESS);
		told = software_event(&rig.memory[i]);
		assert_int_equal(core_evd_post_se(rig.a.dto, &told), DAT_SUCCESS);
		assert_false(is_on(rig.a.dto));
		assert_int_equal(dequeue(rig.a.dto, &event), DAT_SUCCESS);
		assert_int_equal(event.event_number, DAT_SOFTWARE_EVENT);
		assert_ptr_equal(event.event_data.software_event_data.pointer, &rig.memory[i]);
		assert_true(is_on(rig.a.dto));
		expect_at_once(&rig.a, i, 8);
	}
	teardown(state);
}

/* EVD-STREAM-24 EVD-STREAM-26: more than the dispatcher holds; one loss is told, and it goes on */
static void evd__overflow__told_once_and_on_again(void **state)
{
	DAT_EVENT event;
	unsigned count = 0;

	(void)state;
	use_software_evd(2);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(write_len(&rig.a, 8, i), DAT_SUCCESS);
	expect_none(rig.b.dto); /* hands them on: two are lost */
	while (take(rig.a.dto, &event))
		check_event(&event, rig.a.dto, rig.a.ep, count++, DAT_DTO_SUCCESS, 8);
	assert_int_equal(count, 2);
	event = rig_event(rig.async);
	assert_int_equal(event.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	rig_no_event(rig.async);
	assert_true(is_on(rig.a.dto));
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(write_len(&rig.a, 8, i), DAT_SUCCESS);
	for (unsigned i = 0; i < 4; i++)
		expect_at_once(&rig.a, i, 8);
	teardown(state);
}

/* EVD-MODIFY-CNO-01 EVD-MODIFY-CNO-04: with a CNO each completion is told to it; without it again
 * the dispatcher is as before. */
static void evd_modify_cno__set_and_removed__told_meanwhile(void **state)
{
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd;

	(void)state;
	assert_int_equal(core_cno_create(rig.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno), DAT_SUCCESS);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(core_evd_modify_cno(rig.a.dto, cno), DAT_SUCCESS);
		assert_false(is_on(rig.a.dto));
		assert_int_equal(write_len(&rig.a, 8, i), DAT_SUCCESS);
		expect_none(rig.b.dto);
		assert_int_equal(core_cno_wait(cno, RIG_WAIT_US, &evd), DAT_SUCCESS);
		assert_ptr_equal(evd, rig.a.dto);
		expect(&rig.a, i, 8);
		expect_none(rig.a.dto);
		assert_false(is_on(rig.a.dto));
		assert_int_equal(core_evd_modify_cno(rig.a.dto, DAT_HANDLE_NULL), DAT_SUCCESS);
		assert_true(is_on(rig.a.dto));
		assert_int_equal(write_len(&rig.a, 8, i), DAT_SUCCESS);
		expect_at_once(&rig.a, i, 8);
	}
	/* taken away with an event queued */
	assert_int_equal(core_evd_modify_cno(rig.a.dto, cno), DAT_SUCCESS);
	assert_int_equal(write_len(&rig.a, 8, 5), DAT_SUCCESS);
	assert_int_equal(write_len(&rig.a, 8, 6), DAT_SUCCESS);
	device.polls = 0;
	expect_none(rig.b.dto);
	assert_int_equal(core_evd_modify_cno(rig.a.dto, DAT_HANDLE_NULL), DAT_SUCCESS);
	assert_false(is_on(rig.a.dto));
	expect(&rig.a, 5, 8);
	expect(&rig.a, 6, 8);
	assert_true(is_on(rig.a.dto));
}

/* EVD-RESIZE-02 */
static void evd_resize__in_between__nothing_lost(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SLOTS; i++) {
		assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
		assert_int_equal(write_len(&rig.a, 9, 2), DAT_SUCCESS);
		if (i % 2)
			expect_none(rig.b.dto);
		assert_int_equal(core_evd_resize(rig.a.dto, (DAT_COUNT)(2 + i)), DAT_SUCCESS);
		expect(&rig.a, 1, 8);
		expect(&rig.a, 2, 9);
		assert_true(is_on(rig.a.dto));
	}
}

/* EVD-DEQUEUE-02: nowhere to, or nothing; the completion is not lost */
static void evd_dequeue__null_or_empty__told_so(void **state)
{
	DAT_EVENT event, before;
	unsigned polls;

	(void)state;
	assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
	polls = device.polls;
	assert_int_equal(dequeue(rig.a.dto, NULL),
			 DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	assert_int_equal(device.polls, polls);
	assert_true(is_on(rig.a.dto));
	expect_at_once(&rig.a, 1, 8);
	memset(&event, 0x3c, sizeof(event));
	before = event;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(dequeue(rig.a.dto, &event), DAT_QUEUE_EMPTY);
		assert_true(is_on(rig.a.dto));
		assert_memory_equal(&event, &before, sizeof(event));
	}
	assert_int_equal(device.polls, polls + 4);
}

/* Several found by one look: the first is the caller's, the others are queued in order. */
static void evd_dequeue__several_at_once__in_order(void **state)
{
	unsigned polls;

	(void)state;
	device.most = VRB_POLL_BATCH;
	for (unsigned round = 0; round < 2 * SLOTS; round++) {
		for (unsigned i = 0; i < ROOM; i++)
			assert_int_equal(write_len(&rig.a, 8 + i, 100 + i), DAT_SUCCESS);
		assert_true(is_on(rig.a.dto));
		for (unsigned i = 0; i < ROOM; i++) {
			DAT_EVENT event;

			assert_int_equal(dequeue(rig.a.dto, &event), DAT_SUCCESS);
			check_event(&event, rig.a.dto, rig.a.ep, 100 + i, DAT_DTO_SUCCESS, 8 + i);
			assert_int_equal(is_on(rig.a.dto), i == ROOM - 1);
		}
		assert_true(is_on(rig.a.ep));
	}
	/* one look takes all there is */
	for (unsigned i = 0; i < VRB_POLL_BATCH; i++)
		assert_int_equal(write_len(&rig.b, 8, i), DAT_SUCCESS);
	for (unsigned i = 0; i < ROOM; i++)
		assert_int_equal(write_len(&rig.a, 8, i), DAT_SUCCESS);
	polls = device.polls;
	expect(&rig.b, 0, 8);
	assert_int_equal(device.polls - polls, 2);
	for (unsigned i = 1; i < VRB_POLL_BATCH; i++)
		expect(&rig.b, i, 8);
	for (unsigned i = 0; i < ROOM; i++)
		expect(&rig.a, i, 8);
	/* more than one poll gives, and than the queue has room for */
	for (unsigned i = 0; i < 30; i++)
		assert_int_equal(write_len(&rig.b, 8, i), DAT_SUCCESS);
	for (unsigned i = 0; i < 30; i++)
		expect(&rig.b, i, 8);
	assert_true(is_on(rig.b.ep) && is_on(rig.b.dto));
}

/* Another thread polls the completion queue: there is nothing to be found, and nothing is lost. */
static void evd_dequeue__queue_polled_by_another__empty(void **state)
{
	struct vrb_cq *cq = conn_of(&rig.a)->cq;
	unsigned polls = device.polls;
	DAT_EVENT event;

	(void)state;
	device.watched = rig.a.dto;
	assert_int_equal(core_evd_dequeue(rig.a.dto, &event), DAT_QUEUE_EMPTY);
	assert_int_equal(device.polls, ++polls);
	assert_false(device.was_on); /* while it drove the transport */
	assert_true(is_on(rig.a.dto));
	assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
	assert_true(vrb_cq_own(cq));
	assert_int_equal(dequeue(rig.a.dto, &event), DAT_QUEUE_EMPTY);
	assert_int_equal(device.polls, polls);
	vrb_cq_disown(cq);
	expect_at_once(&rig.a, 1, 8);
	assert_false(atomic_load(&cq->is_owned));
}

/* A bind that is held up goes on when somebody looks, however there is nothing for him. */
static void evd_dequeue__empty__binds_held_up_go_on(void **state)
{
	DAT_EVENT event;

	(void)state;
	vrb_window_blocked(conn_of(&rig.b), true);
	assert_true(is_on(rig.b.ep));
	assert_int_equal(dequeue(rig.a.dto, &event), DAT_QUEUE_EMPTY);
	assert_false(is_on(rig.b.ep)); /* it was asked */
	assert_true(is_on(rig.a.ep));
	vrb_window_blocked(conn_of(&rig.b), false);
}

static _Atomic bool is_told;

static void *wait_for_one(void *argument)
{
	DAT_EVENT *event = argument;

	*event = rig_event(rig.a.dto);
	atomic_store(&is_told, true);
	return NULL;
}

/* Hands on what there is, whoever polled last. */
static void until_told(void)
{
	while (!atomic_load(&is_told)) {
		rig_no_event(rig.b.conn);
		sched_yield();
	}
}

/* Until a thread waits for it. */
static void until_waited_for(void)
{
	struct core_evd *evd = cell(rig.a.dto)->object;
	bool has_waiter = false;

	while (!has_waiter) {
		core_lock_acquire(&evd->cell->lock);
		has_waiter = evd->has_waiter;
		core_lock_release(&evd->cell->lock);
		sched_yield();
	}
}

/* EVD-DEQUEUE-04 EVD-DEQUEUE-05: a thread waits while another one dequeues, which is refused, and
 * gets the completion. */
static void evd_wait__while_another_dequeues__gets_it(void **state)
{
	DAT_EVENT event, other;
	pthread_t thread;

	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		spoil_slots();
		atomic_store(&is_told, false);
		assert_int_equal(pthread_create(&thread, NULL, wait_for_one, &event), 0);
		until_waited_for();
		assert_false(is_on(rig.a.dto));
		assert_int_equal(dequeue(rig.a.dto, &other), DAT_CLASS_ERROR | DAT_INVALID_STATE |
								     DAT_INVALID_STATE_EVD_WAITER);
		assert_false(is_on(rig.a.dto));
		if (i % 2) {
			assert_int_equal(recv_len(&rig.a, 64, i), DAT_SUCCESS);
			assert_int_equal(send_len(&rig.b, 8, 9), DAT_SUCCESS);
		} else {
			assert_int_equal(write_len(&rig.a, 8, i), DAT_SUCCESS);
		}
		until_told();
		assert_int_equal(pthread_join(thread, NULL), 0);
		check_event(&event, rig.a.dto, rig.a.ep, i, DAT_DTO_SUCCESS, 8);
		if (i % 2)
			expect(&rig.b, 9, 8);
		own_all();
		assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
		expect(&rig.a, 1, 8);
		assert_true(is_on(rig.a.dto));
		assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
		expect_at_once(&rig.a, 1, 8);
	}
}

static void *wait_for_end(void *argument)
{
	DAT_EVENT event;
	DAT_COUNT more;

	assert_int_equal(DAT_GET_TYPE(core_evd_wait(*(DAT_EVD_HANDLE *)argument,
						    DAT_TIMEOUT_INFINITE, 1, &event, &more)),
			 DAT_ABORT);
	return NULL;
}

/* EVD-FREE-08 EVD-FREE-11: the waiter that leaves does not bring the handle back. */
static void evd_free__while_a_thread_waits__handle_dead(void **state)
{
	DAT_EVD_HANDLE mine = rig.a.dto, evd = make_evd(8, DAT_HANDLE_NULL);
	const DAT_PROVIDER *calls = CALLS(evd);
	DAT_EVENT event;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, wait_for_end, &evd), 0);
	rig.a.dto = evd;
	until_waited_for();
	rig.a.dto = mine;
	assert_int_equal(core_evd_free(evd), DAT_SUCCESS);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(is_on(evd));
	assert_int_equal(calls->evd_dequeue_func(evd, &event),
			 DAT_CLASS_ERROR | DAT_INVALID_HANDLE);
}

/* --- several completion queues --- */

static void large(DAT_EP_ATTR *attr)
{
	attr->max_request_dtos = 5000; /* more than the first queue has room for */
	attr->max_recv_dtos = 5000;
}

/* The first is not polled alone any more when there is a second one, and neither is starved. */
static void vrb_cq__a_second_one__both_polled(void **state)
{
	struct rig_ep a = rig.a, b = rig.b;
	struct vrb_cq *first = conn_of(&rig.a)->cq;
	DAT_EVENT event;

	(void)state;
	let_go();
	for (int i = 0; i < 2; i++) {
		struct rig_ep *ep = i ? &rig.b : &rig.a;

		assert_int_equal(
			core_ep_create(rig.ia, rig.pz, ep->dto, ep->dto, ep->conn, NULL, &ep->ep),
			DAT_SUCCESS);
		remake(ep, ep->dto, ep->dto, large);
	}
	join();
	settle();
	own(a.ep);
	own(b.ep);
	assert_ptr_not_equal(conn_of(&rig.a)->cq, first);
	assert_null(atomic_load(&inner(&rig.a)->ia->express));
	for (uint64_t i = 0; i < 4 * SLOTS; i++) {
		unsigned polls = device.polls;

		assert_int_equal(write_len(&a, 5, 100 + i), DAT_SUCCESS);
		assert_int_equal(write_len(&rig.a, 6, 200 + i), DAT_SUCCESS);
		assert_int_equal(write_len(&rig.b, 7, 300 + i), DAT_SUCCESS);
		assert_true(take(rig.a.dto, &event)); /* each look is one at each queue */
		assert_in_range(device.polls - polls, 2, 3);
		assert_true(event.event_data.dto_completion_event_data.ep_handle == a.ep ||
			    event.event_data.dto_completion_event_data.ep_handle == rig.a.ep);
		assert_true(take(rig.a.dto, &event));
		expect(&rig.b, 300 + i, 7);
		expect_none(rig.a.dto);
		assert_true(is_on(a.ep) && is_on(rig.a.ep));
	}
	assert_null(atomic_load(&inner(&rig.a)->ia->express));
	let_go();
	assert_int_equal(core_ep_free(rig.a.ep), DAT_SUCCESS);
	assert_int_equal(core_ep_free(rig.b.ep), DAT_SUCCESS);
	rig.a = a;
	rig.b = b;
	fake_hold(true);
}

/* --- shared receive queues --- */

static DAT_SRQ_HANDLE make_with_srq(struct rig_ep *ep)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = 8, .max_recv_iov = 2, .low_watermark = DAT_SRQ_LW_DEFAULT};
	DAT_EP_PARAM param;
	DAT_SRQ_HANDLE srq;

	assert_int_equal(core_ep_query(ep->ep, DAT_EP_FIELD_ALL, &param), DAT_SUCCESS);
	assert_int_equal(core_ep_free(ep->ep), DAT_SUCCESS);
	assert_int_equal(core_srq_create(rig.ia, rig.pz, &attr, &srq), DAT_SUCCESS);
	small(&param.ep_attr);
	param.ep_attr.max_recv_dtos = 0;
	param.ep_attr.max_recv_iov = 0;
	assert_int_equal(core_ep_create_with_srq(rig.ia, rig.pz, ep->dto, ep->dto, ep->conn, srq,
						 &param.ep_attr, &ep->ep),
			 DAT_SUCCESS);
	return srq;
}

static void srq_recv(DAT_SRQ_HANDLE srq, uint64_t cookie)
{
	DAT_LMR_TRIPLET seg = rig_seg(&rig, HALF, 64);

	assert_int_equal(core_srq_post_recv(srq, 1, &seg, cookie_of(cookie)), DAT_SUCCESS);
}

/* The endpoint's requests are on the way, and stay on it, while its Receives come from the SRQ. */
static void srq__receives_between_requests__both_told(void **state)
{
	DAT_SRQ_HANDLE srq;
	DAT_EVENT event;

	(void)state;
	open_rig();
	srq = make_with_srq(&rig.a);
	join();
	fake_hold(true);
	device.is_off = false;
	own_all();
	assert_int_equal(recv_len(&rig.b, 64, 1), DAT_SUCCESS);
	assert_int_equal(send_len(&rig.a, 8, 1), DAT_SUCCESS);
	expect(&rig.a, 1, 8);
	expect(&rig.b, 1, 8);
	for (uint64_t i = 0; i < 3 * SLOTS; i++) {
		assert_true(is_on(rig.a.ep));
		device.most = i % 2 ? VRB_POLL_BATCH : 1;
		srq_recv(srq, 100 + i);
		assert_int_equal(write_len(&rig.a, 8, 200 + i), DAT_SUCCESS);
		assert_int_equal(send_len(&rig.b, 9, 300 + i), DAT_SUCCESS);
		assert_int_equal(write_len(&rig.a, 10, 400 + i), DAT_SUCCESS);
		expect(&rig.a, 200 + i, 8);
		expect(&rig.a, 100 + i, 9);
		expect(&rig.a, 400 + i, 10);
		expect(&rig.b, 300 + i, 9);
		assert_int_equal(recv_len(&rig.a, 8, 1) & ~DAT_CLASS_ERROR, BAD_ARG(1));
	}
	assert_true(is_on(rig.a.ep));
	/* one that comes while requests are outstanding */
	assert_int_equal(send_len(&rig.a, 8, 7), DAT_SUCCESS);
	srq_recv(srq, 8);
	assert_int_equal(send_len(&rig.b, 9, 9), DAT_SUCCESS);
	expect(&rig.a, 8, 9);
	assert_true(is_on(rig.a.ep));
	assert_int_equal(recv_len(&rig.b, 64, 1), DAT_SUCCESS);
	expect(&rig.a, 7, 8);
	/* and the end, with some of each outstanding */
	srq_recv(srq, 1);
	assert_int_equal(send_len(&rig.a, 8, 201), DAT_SUCCESS);
	assert_int_equal(send_len(&rig.a, 8, 202), DAT_SUCCESS);
	assert_int_equal(core_ep_disconnect(rig.a.ep, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	let_go();
	expect_flushed(&rig.a, 201);
	expect_flushed(&rig.a, 202);
	rig_expect_conn(&rig.a, DAT_CONNECTION_EVENT_DISCONNECTED);
	while (take(rig.a.dto, &event))
		;
	teardown(state);
}

/* --- threads --- */

#define THREAD_ROUNDS 20000u
#define THREAD_AHEAD 200u /* what the dispatcher has room for, and less */

static _Atomic uint64_t taken;

/* Dequeues until all have come, each in its turn. */
static void *take_in_order(void *argument)
{
	DAT_EVENT event;
	uint64_t next = 0;

	while (next < THREAD_ROUNDS) {
		DAT_RETURN ret = dequeue(rig.a.dto, &event);
		const DAT_DTO_COMPLETION_EVENT_DATA *data =
			&event.event_data.dto_completion_event_data;

		if (ret == DAT_QUEUE_EMPTY) {
			sched_yield();
			continue;
		}
		if (ret != DAT_SUCCESS || event.event_number != DAT_DTO_COMPLETION_EVENT ||
		    data->user_cookie.as_64 != next || data->status != DAT_DTO_SUCCESS ||
		    data->transfered_length != 1 + next % 100 || data->ep_handle != rig.a.ep)
			break;
		atomic_store(&taken, ++next);
	}
	*(bool *)argument = next == THREAD_ROUNDS;
	atomic_store(&taken, UINT64_MAX / 2); /* or it has failed: nobody need wait */
	return NULL;
}

/* EVD-STREAM-04: one posts, and posts again while the queue is full; the other one takes. */
static void threads__one_posts_one_dequeues__each_completion_once(void **state)
{
	bool is_good = false;
	pthread_t thread;

	(void)state;
	let_go();
	device.most = VRB_POLL_BATCH;
	atomic_store(&taken, 0);
	assert_int_equal(pthread_create(&thread, NULL, take_in_order, &is_good), 0);
	for (uint64_t i = 0; i < THREAD_ROUNDS;) {
		DAT_RETURN ret;

		if (i >= atomic_load(&taken) + THREAD_AHEAD) {
			sched_yield();
			continue;
		}
		ret = write_len(&rig.a, 1 + i % 100, i);
		if (ret == DAT_SUCCESS)
			i++;
		else
			assert_int_equal(DAT_GET_TYPE(ret), DAT_INSUFFICIENT_RESOURCES);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(is_good);
	rig_no_event(rig.a.dto);
	assert_int_equal(inner(&rig.a)->req.head, inner(&rig.a)->req.tail);
	assert_int_equal(write_len(&rig.a, 8, 1), DAT_SUCCESS);
	rig_expect_dto(&rig.a, 1, DAT_DTO_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		RIG_TEST(post__usual__completed_on_the_way),
		RIG_TEST(post__usual__work_request_exact),
		RIG_TEST(post_recv__usual__work_request_exact),
		RIG_TEST(post__several_outstanding__in_order_over_the_rings_end),
		RIG_TEST(post__queue_full__refused_until_a_completion_is_taken),
		RIG_TEST(evd_dequeue__of_another_dispatcher__found_and_kept),
		cmocka_unit_test(evd_dequeue__separate_dispatchers__each_its_own),
		cmocka_unit_test(evd_dequeue__two_endpoints__told_apart),
		cmocka_unit_test(post__not_usual__as_without_the_way),
		RIG_TEST(post__another_region__known_from_then_on),
		RIG_TEST(post__known_region_freed__refused),
		RIG_TEST(post__regions_of_their_own__each_with_its_key_and_end),
		RIG_TEST(post__place_of_the_known_region_used_again__its_own_bounds),
		RIG_TEST(ep_modify__another_zone__known_region_refused),
		RIG_TEST(post_recv__known_to_the_core_alone__in_order),
		RIG_TEST(vrb_express_begin__nothing_to_complete__on_all_the_same),
		RIG_TEST(calls__on_the_way__seen_by_the_service_thread),
		cmocka_unit_test(calls__unknown_device__not_on_the_way),
		RIG_TEST(post_recv__behind_one_of_two_segments__both_in_order),
		RIG_TEST(vrb_express_settle_recv__posted_on_the_way__complete),
		RIG_TEST(calls__wrong_or_dead_handle__refused),
		RIG_TEST(vrb_express_begin__queues_not_calm__does_not),
		RIG_TEST(core_ep_express_begin__endpoint_not_usual__does_not),
		RIG_TEST(vrb_express_begin__on_already__goes_on),
		RIG_TEST(post__refused_by_the_device__broken_once),
		RIG_TEST(post_recv__refused_by_the_device__broken_once),
		RIG_TEST(completion__error__told_and_the_rest_flushed),
		RIG_TEST(completion__error_of_a_receive__told_and_the_rest_flushed),
		RIG_TEST(completion__says_little__memory_is_looked_at),
		RIG_TEST(completion__of_a_receive_says_little__memory_is_looked_at),
		RIG_TEST(completion__of_a_later_request_first__in_order),
		RIG_TEST(completion__of_an_old_connection__nobodys),
		RIG_TEST(ep_disconnect__abrupt__all_flushed_in_order),
		RIG_TEST(ep_disconnect__graceful__all_done_before),
		RIG_TEST(peer__ends__all_flushed_in_order),
		RIG_TEST(qp_event__of_an_error__all_flushed),
		RIG_TEST(ep_free__outstanding__nothing_left),
		RIG_TEST(ia_close__outstanding__nothing_left),
		cmocka_unit_test(evd_post_se__before_a_completion__first),
		cmocka_unit_test(evd__overflow__told_once_and_on_again),
		RIG_TEST(evd_modify_cno__set_and_removed__told_meanwhile),
		RIG_TEST(evd_resize__in_between__nothing_lost),
		RIG_TEST(evd_dequeue__null_or_empty__told_so),
		RIG_TEST(evd_dequeue__several_at_once__in_order),
		RIG_TEST(evd_dequeue__queue_polled_by_another__empty),
		RIG_TEST(evd_dequeue__empty__binds_held_up_go_on),
		RIG_TEST(evd_wait__while_another_dequeues__gets_it),
		RIG_TEST(evd_free__while_a_thread_waits__handle_dead),
		RIG_TEST(vrb_cq__a_second_one__both_polled),
		cmocka_unit_test(srq__receives_between_requests__both_told),
		RIG_TEST(threads__one_posts_one_dequeues__each_completion_once),
	};

	fake_other_ops = listen_in;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
