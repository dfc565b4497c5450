// SPDX-License-Identifier: BSD-2-Clause
/* The stand-in's objects and transfers (fake.h); the connection manager is in fake_cm.c. */
#include "fake_inner.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
struct ibv_context fake_context;
void (*fake_other_ops)(struct ibv_context_ops *ops);
uint32_t fake_vendor = FAKE_VENDOR;
static struct ibv_device fake_device;
static bool is_iwarp;
static bool is_port_down;
static int live;
static unsigned calls, fail_at;
static int fail_error;
static const char *failed;
static unsigned posts, doorbells, fences;
static bool is_holding_reads; /* fake_hold_reads */
static _Thread_local unsigned cancellable;
static enum ibv_wc_status next_status;
static bool next_is_write; /* fake_write_next */

static bool has_windows = true, is_rxe;

static struct fake_qp *qps;
static struct fake_mr *mrs;
static uint32_t last_number = 100;

static const char *fail_name; /* the call that fails next, in place of the number */

struct fake_async_event {
	struct ibv_async_event event;
	struct fake_async_event *next;
};
static struct fake_async_event *asyncs;
static bool is_holding, is_held; /* fake_hold, and that somebody waits for it */
static pthread_cond_t hold_changed = PTHREAD_COND_INITIALIZER;

/* --- faults --- */

void fake_fail_at(unsigned call)
{
	pthread_mutex_lock(&fake_lock);
	calls = 0;
	fail_at = call;
	fail_name = NULL;
	failed = NULL;
	pthread_mutex_unlock(&fake_lock);
}

void fake_fail_next(const char *call)
{
	fake_fail_at(0);
	pthread_mutex_lock(&fake_lock);
	fail_name = call;
	pthread_mutex_unlock(&fake_lock);
}

void fake_fail_with(int error)
{
	pthread_mutex_lock(&fake_lock);
	fail_error = error;
	pthread_mutex_unlock(&fake_lock);
}

const char *fake_failed(void)
{
	const char *name;

	pthread_mutex_lock(&fake_lock);
	name = failed;
	pthread_mutex_unlock(&fake_lock);
	return name;
}

int fake_live(void)
{
	int count;

	pthread_mutex_lock(&fake_lock);
	count = live;
	pthread_mutex_unlock(&fake_lock);
	return count;
}

bool fake_fails(const char *name, int error)
{
	calls++;
	if (fail_name ? strcmp(name, fail_name) != 0 : calls != fail_at)
		return false;
	fail_name = NULL;
	failed = name;
	errno = fail_error ? fail_error : error;
	fail_error = 0;
	return true;
}

void fake_count(int change)
{
	live += change;
}

void fake_port(bool is_up)
{
	pthread_mutex_lock(&fake_lock);
	is_port_down = !is_up;
	fake_async_locked(is_up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, NULL);
	pthread_mutex_unlock(&fake_lock);
}

void fake_be_iwarp(bool be_iwarp)
{
	is_iwarp = be_iwarp;
}

void fake_windows(bool has, bool be_rxe)
{
	has_windows = has;
	is_rxe = be_rxe;
}

bool fake_is_iwarp(void)
{
	return is_iwarp;
}

void fake_status(enum ibv_wc_status status)
{
	pthread_mutex_lock(&fake_lock);
	next_status = status;
	pthread_mutex_unlock(&fake_lock);
}

void fake_write_next(void)
{
	pthread_mutex_lock(&fake_lock);
	next_is_write = true;
	pthread_mutex_unlock(&fake_lock);
}

unsigned fake_read_count(const unsigned *count)
{
	unsigned value;

	pthread_mutex_lock(&fake_lock);
	value = *count;
	pthread_mutex_unlock(&fake_lock);
	return value;
}

unsigned fake_posts(void)
{
	return fake_read_count(&posts);
}

unsigned fake_doorbells(void)
{
	return fake_read_count(&doorbells);
}

unsigned fake_fences(void)
{
	return fake_read_count(&fences);
}

unsigned fake_cancellable(void)
{
	return cancellable;
}

void fake_be_vendor(uint32_t vendor)
{
	fake_vendor = vendor ? vendor : FAKE_VENDOR;
}

/* What real libraries do here can be a cancellation point. */
static void count_cancellable(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_setcancelstate(state, NULL);
	cancellable += state == PTHREAD_CANCEL_ENABLE;
}

struct ibv_qp *fake_qp(void)
{
	struct fake_qp *qp;

	pthread_mutex_lock(&fake_lock);
	for (qp = qps; qp && qp->state != IBV_QPS_RTS; qp = qp->next)
		;
	pthread_mutex_unlock(&fake_lock);
	return qp ? &qp->qp : NULL;
}

struct fake_qp *fake_qp_by_number(uint32_t number)
{
	struct fake_qp *qp = qps;

	while (qp && qp->qp.qp_num != number)
		qp = qp->next;
	return qp;
}

/* A device does this, not the thread that has posted: it is not cancelled here. */
void fake_signal(int fd)
{
	const uint64_t one = 1;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (write(fd, &one, sizeof(one)) < 0)
		abort();
	pthread_setcancelstate(state, NULL);
}

void fake_unsignal(int fd)
{
	uint64_t count;
	ssize_t size = read(fd, &count, sizeof(count));

	(void)size;
}

/* --- the device --- */

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

const char *ibv_event_type_str(enum ibv_event_type type)
{
	(void)type;
	return "event";
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port_num,
		   struct _compat_ibv_port_attr *port_attr)
{
	struct ibv_port_attr attr = {.state = IBV_PORT_ACTIVE,
				     .max_msg_sz = 1u << 30,
				     .link_layer = IBV_LINK_LAYER_ETHERNET};

	(void)context;
	(void)port_num;
	pthread_mutex_lock(&fake_lock);
	if (fake_fails(__func__, EIO)) {
		pthread_mutex_unlock(&fake_lock);
		return EIO;
	}
	if (is_port_down)
		attr.state = IBV_PORT_DOWN;
	pthread_mutex_unlock(&fake_lock);
	memcpy(port_attr, &attr, offsetof(struct ibv_port_attr, port_cap_flags2));
	return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	bool fails;

	(void)context;
	pthread_mutex_lock(&fake_lock);
	fails = fake_fails(__func__, EIO);
	pthread_mutex_unlock(&fake_lock);
	if (fails)
		return EIO;
	memset(attr, 0, sizeof(*attr));
	strcpy(attr->fw_ver, "1.2");
	attr->max_mr_size = UINT64_C(1) << 46;
	attr->max_qp = 4096;
	attr->max_qp_wr = 16384;
	attr->max_sge = 16;
	attr->max_sge_rd = 16;
	attr->max_cq = 1024;
	attr->max_cqe = 65536;
	attr->max_mr = 65536;
	attr->max_pd = 1024;
	attr->max_qp_rd_atom = 16;
	attr->max_qp_init_rd_atom = 16;
	attr->max_res_rd_atom = 4096;
	attr->max_srq = 256;
	attr->max_srq_wr = 8192;
	attr->max_srq_sge = 16;
	attr->vendor_id = is_rxe ? 0xffffff : fake_vendor;
	if (has_windows && !getenv("FAKE_NO_WINDOWS")) {
		attr->max_mw = 65536;
		attr->device_cap_flags = IBV_DEVICE_MEM_WINDOW;
	}
	return 0;
}

static int ops_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc);
static int ops_req_notify_cq(struct ibv_cq *cq, int solicited_only);
static int ops_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
static int ops_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
static int ops_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

struct ibv_context *fake_open(void)
{
	if (!fake_context.device) {
		const char *link = getenv("FAKE_LINK"), *vendor = getenv("FAKE_KNOWN_VENDOR");

		if (vendor)
			fake_vendor = (uint32_t)strtoul(vendor, NULL, 16);
		is_iwarp = is_iwarp || (link && !strcmp(link, "iwarp"));
		strcpy(fake_device.name, "fake0");
		fake_device.transport_type = is_iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
		fake_device.node_type = is_iwarp ? IBV_NODE_RNIC : IBV_NODE_CA;
		fake_context.device = &fake_device;
		fake_context.async_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		fake_context.ops.poll_cq = ops_poll_cq;
		fake_context.ops.req_notify_cq = ops_req_notify_cq;
		fake_context.ops.post_send = ops_post_send;
		fake_context.ops.post_recv = ops_post_recv;
		fake_context.ops.post_srq_recv = ops_post_srq_recv;
		fake_mw_ops(&fake_context.ops);
		if (fake_other_ops)
			fake_other_ops(&fake_context.ops);
	}
	return &fake_context;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *context = NULL;

	(void)device;
	pthread_mutex_lock(&fake_lock);
	if (!fake_fails(__func__, ENOMEM)) {
		context = fake_open();
		live++;
	}
	pthread_mutex_unlock(&fake_lock);
	return context;
}

int ibv_close_device(struct ibv_context *context)
{
	(void)context;
	pthread_mutex_lock(&fake_lock);
	live--;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

/* --- events of the device --- */

void fake_async_locked(enum ibv_event_type type, struct ibv_qp *qp)
{
	struct fake_async_event *event = calloc(1, sizeof(*event));
	struct fake_async_event **link = &asyncs;

	event->event.event_type = type;
	event->event.element.qp = qp;
	while (*link)
		link = &(*link)->next;
	*link = event;
	if (qp)
		((struct fake_qp *)qp)->events++;
	fake_signal(fake_context.async_fd);
}

void fake_async(enum ibv_event_type type, struct ibv_qp *qp)
{
	pthread_mutex_lock(&fake_lock);
	fake_async_locked(type, qp);
	pthread_mutex_unlock(&fake_lock);
}

void fake_hold(bool hold)
{
	pthread_mutex_lock(&fake_lock);
	is_holding = hold;
	pthread_cond_broadcast(&hold_changed);
	if (hold)
		fake_async_locked(IBV_EVENT_GID_CHANGE, NULL); /* one that says nothing */
	while (hold && !is_held)
		pthread_cond_wait(&hold_changed, &fake_lock);
	pthread_mutex_unlock(&fake_lock);
}

/* Locked. */
static void hold_asker(void)
{
	while (is_holding) {
		is_held = true;
		pthread_cond_broadcast(&hold_changed);
		pthread_cond_wait(&hold_changed, &fake_lock);
	}
	is_held = false;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct fake_async_event *first;

	pthread_mutex_lock(&fake_lock);
	hold_asker();
	first = asyncs;
	if (!first) {
		fake_unsignal(context->async_fd);
	} else {
		asyncs = first->next;
		*event = first->event;
		free(first);
	}
	pthread_mutex_unlock(&fake_lock);
	errno = EAGAIN;
	return first ? 0 : -1;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	pthread_mutex_lock(&fake_lock);
	if (event->event_type == IBV_EVENT_QP_FATAL || event->event_type == IBV_EVENT_COMM_EST ||
	    event->event_type == IBV_EVENT_QP_REQ_ERR ||
	    event->event_type == IBV_EVENT_QP_ACCESS_ERR)
		((struct fake_qp *)event->element.qp)->events--;
	pthread_mutex_unlock(&fake_lock);
}

/* --- memory --- */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = NULL;

	pthread_mutex_lock(&fake_lock);
	if (!fake_fails(__func__, ENOMEM)) {
		pd = calloc(1, sizeof(*pd));
		pd->context = context;
		live++;
	}
	pthread_mutex_unlock(&fake_lock);
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	bool is_used;

	pthread_mutex_lock(&fake_lock);
	is_used = fake_mw_is_in(pd);
	if (!is_used)
		live--;
	pthread_mutex_unlock(&fake_lock);
	if (is_used) {
		errno = EBUSY;
		return EBUSY;
	}
	free(pd);
	return 0;
}

/* As the kernel finds when it pins the pages. */
static bool can_pin(const void *addr, size_t length, unsigned int access)
{
	FILE *maps = access & IBV_ACCESS_LOCAL_WRITE ? fopen("/proc/self/maps", "r") : NULL;
	unsigned long start = (uintptr_t)addr, low, high;
	bool is_good = true;
	char line[512], flags[5];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %4s", &low, &high, flags) == 3 && low < start + length &&
		    high > start && flags[1] != 'w')
			is_good = false;
	if (maps)
		fclose(maps);
	errno = EFAULT;
	return is_good;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	struct fake_mr *mr = NULL;

	(void)iova;
	pthread_mutex_lock(&fake_lock);
	if (!fake_fails("ibv_reg_mr", ENOMEM) && can_pin(addr, length, access)) {
		mr = calloc(1, sizeof(*mr));
		last_number++;
		mr->mr = (struct ibv_mr){.context = pd->context,
					 .pd = pd,
					 .addr = addr,
					 .length = length,
					 .lkey = last_number,
					 .rkey = last_number};
		mr->access = (int)access;
		mr->next = mrs;
		mrs = mr;
		live++;
	}
	pthread_mutex_unlock(&fake_lock);
	return mr ? &mr->mr : NULL;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct fake_mr **link = &mrs;

	pthread_mutex_lock(&fake_lock);
	while (&(*link)->mr != mr)
		link = &(*link)->next;
	if ((*link)->windows) {
		pthread_mutex_unlock(&fake_lock);
		errno = EBUSY;
		return EBUSY;
	}
	*link = (*link)->next;
	live--;
	pthread_mutex_unlock(&fake_lock);
	free(mr);
	return 0;
}

struct fake_mr *fake_mr_by_key(uint32_t key)
{
	struct fake_mr *mr = mrs;

	while (mr && mr->mr.lkey != key)
		mr = mr->next;
	return mr;
}

/* May that key be used like this? */
static bool mem_is_good(uint32_t key, const struct ibv_pd *pd, uint64_t addr, uint64_t len,
			int access)
{
	const struct fake_mr *mr = fake_mr_by_key(key);

	return mr && mr->mr.pd == pd && (mr->access & access) == access &&
	       addr >= (uintptr_t)mr->mr.addr && len <= mr->mr.length &&
	       addr - (uintptr_t)mr->mr.addr <= mr->mr.length - len;
}

static bool sges_are_good(const struct fake_qp *qp, const struct ibv_sge *sge, uint32_t count,
			  int access)
{
	for (uint32_t i = 0; i < count; i++)
		if (sge[i].length &&
		    !mem_is_good(sge[i].lkey, qp->qp.pd, sge[i].addr, sge[i].length, access))
			return false;
	return true;
}

static uint64_t sges_len(const struct ibv_sge *sge, uint32_t count)
{
	uint64_t len = 0;

	for (uint32_t i = 0; i < count; i++)
		len += sge[i].length;
	return len;
}

/* --- completion queues --- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct fake_channel *channel = NULL;

	pthread_mutex_lock(&fake_lock);
	if (!fake_fails(__func__, ENOMEM)) {
		channel = calloc(1, sizeof(*channel));
		channel->channel.context = context;
		channel->channel.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		live++;
	}
	pthread_mutex_unlock(&fake_lock);
	return channel ? &channel->channel : NULL;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	pthread_mutex_lock(&fake_lock);
	live--;
	pthread_mutex_unlock(&fake_lock);
	close(channel->fd);
	free(channel);
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct fake_cq *cq = NULL;

	(void)comp_vector;
	pthread_mutex_lock(&fake_lock);
	if (!fake_fails(__func__, ENOMEM)) {
		cq = calloc(1, sizeof(*cq));
		cq->cq.context = context;
		cq->cq.channel = channel;
		cq->cq.cq_context = cq_context;
		cq->cq.cqe = cqe;
		cq->wc = calloc((size_t)cqe, sizeof(*cq->wc));
		live++;
	}
	pthread_mutex_unlock(&fake_lock);
	return cq ? &cq->cq : NULL;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	pthread_mutex_lock(&fake_lock);
	live--;
	pthread_mutex_unlock(&fake_lock);
	free(((struct fake_cq *)cq)->wc);
	free(cq);
	return 0;
}

static void cq_add(struct ibv_cq *ibv_cq, const struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)ibv_cq;

	if (cq->tail - cq->head == (uint64_t)cq->cq.cqe)
		abort(); /* the provider promises that this never happens */
	cq->wc[cq->tail++ % (uint64_t)cq->cq.cqe] = *wc;
	if (!cq->is_armed || !cq->cq.channel)
		return;
	cq->is_armed = false;
	cq->events++;
	fake_signal(cq->cq.channel->fd);
	((struct fake_channel *)cq->cq.channel)->cq = cq;
}

static int ops_poll_cq(struct ibv_cq *ibv_cq, int count, struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)ibv_cq;
	int found = 0;

	pthread_mutex_lock(&fake_lock);
	count_cancellable();
	while (found < count && cq->head != cq->tail)
		wc[found++] = cq->wc[cq->head++ % (uint64_t)cq->cq.cqe];
	pthread_mutex_unlock(&fake_lock);
	return found;
}

static int ops_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	int rc = 0;

	(void)solicited_only;
	pthread_mutex_lock(&fake_lock);
	if (fake_fails("ibv_req_notify_cq", EIO))
		rc = EIO;
	else
		((struct fake_cq *)cq)->is_armed = true;
	pthread_mutex_unlock(&fake_lock);
	return rc;
}

/* One queue at a time: the test's adapter has one. */
int ibv_get_cq_event(struct ibv_comp_channel *ibv_channel, struct ibv_cq **cq, void **context)
{
	struct fake_channel *channel = (struct fake_channel *)ibv_channel;
	int rc = -1;

	pthread_mutex_lock(&fake_lock);
	if (channel->cq && channel->cq->events) {
		channel->cq->events--;
		*cq = &channel->cq->cq;
		*context = NULL;
		rc = 0;
	} else {
		fake_unsignal(ibv_channel->fd);
		errno = EAGAIN;
	}
	pthread_mutex_unlock(&fake_lock);
	return rc;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int count)
{
	(void)cq;
	(void)count;
}

/* --- queues --- */

static void work_add(struct fake_work **queue, struct fake_work *work)
{
	while (*queue)
		queue = &(*queue)->next;
	*queue = work;
}

static struct fake_work *work_take(struct fake_work **queue)
{
	struct fake_work *work = *queue;

	if (work)
		*queue = work->next;
	return work;
}

static void work_free(struct fake_work *work)
{
	free(work->bind);
	free(work);
}

static void work_drop_all(struct fake_work **queue)
{
	struct fake_work *work;

	while ((work = work_take(queue)))
		work_free(work);
}

static enum ibv_wc_opcode done_opcode(const struct fake_work *work)
{
	bool is_write = next_is_write;

	if (work->is_recv) {
		next_is_write = false;
		return is_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
	}
	switch (work->opcode) {
	case IBV_WR_RDMA_WRITE:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	default:
		return IBV_WC_SEND;
	}
}

static void complete(struct fake_qp *qp, struct ibv_cq *cq, struct fake_work *work,
		     enum ibv_wc_status status, uint32_t len, bool has_imm)
{
	struct ibv_wc wc = {.wr_id = work->wr_id,
			    .status = status,
			    .opcode = done_opcode(work),
			    .byte_len = len,
			    .qp_num = qp->qp.qp_num,
			    .wc_flags = has_imm ? IBV_WC_WITH_IMM : 0,
			    .imm_data = work->imm};

	if (status != IBV_WC_SUCCESS || work->is_recv || (work->flags & IBV_SEND_SIGNALED))
		cq_add(cq, &wc);
	work_free(work);
}

void fake_qp_error(struct fake_qp *qp)
{
	struct fake_work *work;

	if (qp->state == IBV_QPS_ERR)
		return;
	qp->state = IBV_QPS_ERR;
	while ((work = work_take(&qp->sends)))
		complete(qp, qp->qp.send_cq, work, IBV_WC_WR_FLUSH_ERR, 0, false);
	while ((work = work_take(&qp->recvs)))
		complete(qp, qp->qp.recv_cq, work, IBV_WC_WR_FLUSH_ERR, 0, false);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct fake_qp *qp = NULL;

	pthread_mutex_lock(&fake_lock);
	if (!fake_fails(__func__, ENOMEM)) {
		qp = calloc(1, sizeof(*qp));
		qp->qp = (struct ibv_qp){.context = pd->context,
					 .qp_context = init->qp_context,
					 .pd = pd,
					 .send_cq = init->send_cq,
					 .recv_cq = init->recv_cq,
					 .srq = init->srq,
					 .qp_num = ++last_number,
					 .qp_type = init->qp_type};
		qp->cap = init->cap;
		qp->next = qps;
		qps = qp;
		live++;
	}
	pthread_mutex_unlock(&fake_lock);
	return qp ? &qp->qp : NULL;
}

int ibv_destroy_qp(struct ibv_qp *ibv_qp)
{
	struct fake_qp *qp = (struct fake_qp *)ibv_qp;
	struct fake_qp **link = &qps;

	pthread_mutex_lock(&fake_lock);
	while (qp->events && asyncs) { /* events that were not read die with it */
		struct fake_async_event **async = &asyncs;

		while (*async && (*async)->event.element.qp != ibv_qp)
			async = &(*async)->next;
		if (*async) {
			struct fake_async_event *dead = *async;

			*async = dead->next;
			free(dead);
			qp->events--;
		} else {
			break;
		}
	}
	while (qp->events) { /* somebody has read one */
		pthread_mutex_unlock(&fake_lock);
		usleep(100);
		pthread_mutex_lock(&fake_lock);
	}
	while (*link != qp)
		link = &(*link)->next;
	*link = qp->next;
	live--;
	work_drop_all(&qp->sends);
	work_drop_all(&qp->recvs);
	pthread_mutex_unlock(&fake_lock);
	free(qp);
	return 0;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	(void)mask;
	(void)init;
	pthread_mutex_lock(&fake_lock);
	attr->qp_state = ((struct fake_qp *)qp)->state;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

/* --- transfers --- */

/*
 * Moves bytes as a device does that has no pages of its own: memory that is gone is a fault of the
 * transfer, not of the process.
 */
static bool copy_piece(uint64_t to, uint64_t from, uint64_t len)
{
	const struct iovec out = {(void *)(uintptr_t)to, len};
	const struct iovec in = {(void *)(uintptr_t)from, len};

	return process_vm_writev(getpid(), &in, 1, &out, 1, 0) == (ssize_t)len;
}

static bool copy_sges(const struct fake_work *from, const struct fake_work *to, uint64_t len)
{
	uint64_t done = 0, in = 0, out = 0;
	uint32_t i = 0, j = 0;

	while (done < len) {
		uint64_t piece;

		if (in == from->sge[i].length) {
			i++;
			in = 0;
			continue;
		}
		if (out == to->sge[j].length) {
			j++;
			out = 0;
			continue;
		}
		piece = from->sge[i].length - in;
		if (piece > to->sge[j].length - out)
			piece = to->sge[j].length - out;
		if (!copy_piece(to->sge[j].addr + out, from->sge[i].addr + in, piece))
			return false;
		in += piece;
		out += piece;
		done += piece;
	}
	return true;
}

static void remote_failed(struct fake_qp *remote, enum ibv_event_type type)
{
	fake_async_locked(type, &remote->qp);
	fake_qp_error(remote);
}

/* False: the message waits for a Receive. */
static bool do_send(struct fake_qp *qp, struct fake_qp *remote, struct fake_work *work,
		    enum ibv_wc_status *status)
{
	struct fake_work **queue =
		remote->qp.srq ? &((struct fake_srq *)remote->qp.srq)->recvs : &remote->recvs;
	uint64_t len = sges_len(work->sge, work->count);
	struct fake_work *recv;

	if (!*queue && is_iwarp) { /* it cannot wait */
		*status = IBV_WC_SUCCESS;
		remote_failed(remote, IBV_EVENT_QP_FATAL);
		return true;
	}
	recv = work_take(queue);
	if (!recv)
		return false;
	if (len > sges_len(recv->sge, recv->count)) {
		complete(remote, remote->qp.recv_cq, recv, IBV_WC_LOC_LEN_ERR, 0, false);
		fake_qp_error(remote);
		*status = IBV_WC_REM_INV_REQ_ERR;
	} else if (!sges_are_good(remote, recv->sge, recv->count, IBV_ACCESS_LOCAL_WRITE) ||
		   !copy_sges(work, recv, len)) {
		complete(remote, remote->qp.recv_cq, recv, IBV_WC_LOC_PROT_ERR, 0, false);
		fake_qp_error(remote);
		*status = IBV_WC_REM_OP_ERR;
	} else {
		recv->imm = work->imm;
		complete(remote, remote->qp.recv_cq, recv, IBV_WC_SUCCESS, (uint32_t)len,
			 work->opcode == IBV_WR_SEND_WITH_IMM);
	}
	(void)qp;
	return true;
}

static enum ibv_wc_status do_rdma(struct fake_qp *remote, const struct fake_work *work)
{
	bool is_read = work->opcode == IBV_WR_RDMA_READ;
	struct fake_work other = {.count = 1};
	uint64_t len = sges_len(work->sge, work->count);

	int access = is_read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;

	other.sge[0] = (struct ibv_sge){work->remote_addr, (uint32_t)len, work->rkey};
	if (len && !mem_is_good(work->rkey, remote->qp.pd, work->remote_addr, len, access) &&
	    !fake_mw_is_good(work->rkey, remote->qp.pd, work->remote_addr, len, access)) {
		remote_failed(remote, IBV_EVENT_QP_ACCESS_ERR);
		return IBV_WC_REM_ACCESS_ERR;
	}
	if (is_read ? copy_sges(&other, work, len) : copy_sges(work, &other, len))
		return IBV_WC_SUCCESS;
	remote_failed(remote, IBV_EVENT_QP_FATAL);
	return IBV_WC_REM_OP_ERR;
}

/*
 * The oldest request that is not carried out and that the device may start now. A Read that is held
 * starts here, and does not keep the next one from starting. NULL: none, or it has to wait.
 */
static struct fake_work *next_work(const struct fake_qp *qp)
{
	uint32_t reads = 0; /* in flight */

	for (struct fake_work *work = qp->sends; work; work = work->next) {
		if (work->is_done && work->status != IBV_WC_SUCCESS)
			return NULL;
		if (work->is_done)
			continue;
		if (reads && (work->flags & IBV_SEND_FENCE))
			return NULL;
		if (work->opcode != IBV_WR_RDMA_READ || !is_holding_reads)
			return work;
		if (qp->reads_most && reads >= qp->reads_most)
			return NULL;
		work->is_in_flight = true;
		reads++;
	}
	return NULL;
}

/* False: the request has to wait. */
static bool carry_out(struct fake_qp *qp, struct fake_qp *remote, struct fake_work *work)
{
	enum ibv_wc_status status = next_status;
	bool is_read = work->opcode == IBV_WR_RDMA_READ;

	next_status = IBV_WC_SUCCESS;
	if (status == IBV_WC_SUCCESS && work->bind)
		status = fake_mw_status(work->bind, qp->qp.pd);
	else if (status == IBV_WC_SUCCESS && !work->is_inline &&
		 !sges_are_good(qp, work->sge, work->count, is_read ? IBV_ACCESS_LOCAL_WRITE : 0))
		status = IBV_WC_LOC_PROT_ERR;
	else if (status == IBV_WC_SUCCESS && (work->opcode == IBV_WR_RDMA_WRITE || is_read))
		status = do_rdma(remote, work);
	else if (status == IBV_WC_SUCCESS && !do_send(qp, remote, work, &status))
		return false;
	work->is_done = true;
	work->status = status;
	return true;
}

/* Completions come in the order of the queue. */
static void complete_done(struct fake_qp *qp)
{
	while (qp->sends && qp->sends->is_done) {
		struct fake_work *work = work_take(&qp->sends);
		enum ibv_wc_status status = work->status;

		complete(qp, qp->qp.send_cq, work, status, 0, false);
		if (status != IBV_WC_SUCCESS)
			fake_qp_error(qp);
	}
}

void fake_progress(struct fake_qp *qp)
{
	struct fake_qp *remote = fake_qp_by_number(qp->remote);
	bool has_peer = remote && (remote->state == IBV_QPS_RTR || remote->state == IBV_QPS_RTS);

	while (qp->state == IBV_QPS_RTS) {
		struct fake_work *work = next_work(qp);

		/* a bind concerns no peer */
		if (!work || (!has_peer && !work->bind) || !carry_out(qp, remote, work))
			return;
		complete_done(qp);
	}
}

void fake_hold_reads(bool hold)
{
	pthread_mutex_lock(&fake_lock);
	is_holding_reads = hold;
	for (struct fake_qp *qp = qps; qp; qp = qp->next)
		fake_progress(qp);
	pthread_mutex_unlock(&fake_lock);
}

unsigned fake_reads(void)
{
	unsigned count = 0;

	pthread_mutex_lock(&fake_lock);
	for (const struct fake_qp *qp = qps; qp; qp = qp->next)
		for (const struct fake_work *work = qp->sends; work; work = work->next)
			count += work->is_in_flight && !work->is_done;
	pthread_mutex_unlock(&fake_lock);
	return count;
}

static struct fake_work *work_make(uint64_t wr_id, const struct ibv_sge *sge, int count)
{
	struct fake_work *work = calloc(1, sizeof(*work));

	work->wr_id = wr_id;
	work->count = (uint32_t)count;
	if (count)
		memcpy(work->sge, sge, (size_t)count * sizeof(*sge));
	return work;
}

/* Inline data are the provider's again at return. */
static void take_inline(struct fake_work *work)
{
	unsigned char *to = work->bytes;

	for (uint32_t i = 0; i < work->count; i++) {
		memcpy(to, (void *)(uintptr_t)work->sge[i].addr, work->sge[i].length);
		work->sge[i].addr = (uintptr_t)to;
		to += work->sge[i].length;
	}
	work->is_inline = true;
}

static _Atomic bool is_raising_pipe;

void fake_raise_pipe(bool is_raising)
{
	atomic_store(&is_raising_pipe, is_raising);
}

static int ops_post_send(struct ibv_qp *ibv_qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)ibv_qp;
	int rc = 0;

	if (atomic_load(&is_raising_pipe))
		pthread_kill(pthread_self(), SIGPIPE);

	pthread_mutex_lock(&fake_lock);
	count_cancellable();
	doorbells++;
	*bad = wr;
	if (fake_fails("ibv_post_send", ENOMEM))
		rc = ENOMEM;
	for (; wr && !rc; wr = wr->next) {
		struct fake_work *work = work_make(wr->wr_id, wr->sg_list, wr->num_sge);

		posts++;
		fences += (wr->send_flags & IBV_SEND_FENCE) != 0;
		work->flags = (int)wr->send_flags;
		work->opcode = wr->opcode;
		work->imm = wr->imm_data;
		work->remote_addr = wr->wr.rdma.remote_addr;
		work->rkey = wr->wr.rdma.rkey;
		if (wr->send_flags & IBV_SEND_INLINE)
			take_inline(work);
		if (qp->state == IBV_QPS_ERR)
			complete(qp, qp->qp.send_cq, work, IBV_WC_WR_FLUSH_ERR, 0, false);
		else
			work_add(&qp->sends, work);
	}
	if (!rc)
		fake_progress(qp);
	pthread_mutex_unlock(&fake_lock);
	return rc;
}

/* Must what is posted now, with that fence, wait for reads? */
static bool has_reads(const struct fake_qp *qp)
{
	const struct fake_work *work = qp->sends;

	while (work && (work->opcode != IBV_WR_RDMA_READ || work->is_done))
		work = work->next;
	return work;
}

int fake_post_bind(struct ibv_qp *ibv_qp, const struct ibv_mw_bind *asked, struct fake_bind *bind)
{
	struct fake_qp *qp = (struct fake_qp *)ibv_qp;
	struct fake_work *work = work_make(asked->wr_id, NULL, 0);

	work->flags = (int)asked->send_flags;
	work->opcode = IBV_WR_BIND_MW;
	work->bind = bind;
	posts++;
	doorbells++;
	fences += (asked->send_flags & IBV_SEND_FENCE) != 0;
	if (qp->state == IBV_QPS_ERR) {
		complete(qp, qp->qp.send_cq, work, IBV_WC_WR_FLUSH_ERR, 0, false);
		return 0;
	}
	if (next_status == IBV_WC_SUCCESS &&
	    !((asked->send_flags & IBV_SEND_FENCE) && has_reads(qp)))
		(void)fake_mw_status(bind, qp->qp.pd);
	work_add(&qp->sends, work);
	fake_progress(qp);
	return 0;
}

bool fake_bind_is_queued(const struct fake_mw *mw)
{
	for (const struct fake_qp *qp = qps; qp; qp = qp->next)
		for (const struct fake_work *work = qp->sends; work; work = work->next)
			if (work->bind && work->bind->mw == mw)
				return true;
	return false;
}

static void serve_senders(const struct ibv_srq *srq, uint32_t number)
{
	for (struct fake_qp *qp = qps; qp; qp = qp->next) {
		struct fake_qp *remote = fake_qp_by_number(qp->remote);

		if (remote && (srq ? remote->qp.srq == srq : remote->qp.qp_num == number))
			fake_progress(qp);
	}
}

static int ops_post_recv(struct ibv_qp *ibv_qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)ibv_qp;
	int rc = 0;

	pthread_mutex_lock(&fake_lock);
	count_cancellable();
	*bad = wr;
	if (fake_fails("ibv_post_recv", ENOMEM))
		rc = ENOMEM;
	if (is_iwarp && !wr->num_sge) /* as siw */
		rc = EINVAL;
	for (; wr && !rc; wr = wr->next) {
		struct fake_work *work = work_make(wr->wr_id, wr->sg_list, wr->num_sge);

		work->is_recv = true;
		if (qp->state == IBV_QPS_ERR)
			complete(qp, qp->qp.recv_cq, work, IBV_WC_WR_FLUSH_ERR, 0, false);
		else
			work_add(&qp->recvs, work);
	}
	serve_senders(NULL, qp->qp.qp_num);
	pthread_mutex_unlock(&fake_lock);
	return rc;
}

int ibv_modify_qp(struct ibv_qp *ibv_qp, struct ibv_qp_attr *attr, int mask)
{
	struct fake_qp *qp = (struct fake_qp *)ibv_qp;
	int rc = 0;

	pthread_mutex_lock(&fake_lock);
	if (attr->qp_state == IBV_QPS_ERR) {
		fake_qp_error(qp);
	} else if (fake_fails(__func__, EINVAL)) {
		rc = EINVAL;
	} else {
		qp->state = attr->qp_state;
		if (mask & IBV_QP_DEST_QPN)
			qp->remote = attr->dest_qp_num;
		if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
			qp->reads_most = attr->max_rd_atomic;
		if (qp->state == IBV_QPS_RTR || qp->state == IBV_QPS_RTS)
			serve_senders(NULL, qp->qp.qp_num);
	}
	pthread_mutex_unlock(&fake_lock);
	return rc;
}

/* --- shared receive queues --- */

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct fake_srq *srq = NULL;

	(void)init;
	pthread_mutex_lock(&fake_lock);
	if (!fake_fails(__func__, ENOMEM)) {
		srq = calloc(1, sizeof(*srq));
		srq->srq.context = pd->context;
		srq->srq.pd = pd;
		live++;
	}
	pthread_mutex_unlock(&fake_lock);
	return srq ? &srq->srq : NULL;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	pthread_mutex_lock(&fake_lock);
	live--;
	work_drop_all(&((struct fake_srq *)srq)->recvs);
	pthread_mutex_unlock(&fake_lock);
	free(srq);
	return 0;
}

static int ops_post_srq_recv(struct ibv_srq *ibv_srq, struct ibv_recv_wr *wr,
			     struct ibv_recv_wr **bad)
{
	struct fake_srq *srq = (struct fake_srq *)ibv_srq;
	int rc = 0;

	pthread_mutex_lock(&fake_lock);
	count_cancellable();
	*bad = wr;
	if (fake_fails("ibv_post_srq_recv", ENOMEM)) {
		rc = ENOMEM;
	} else if (is_iwarp && !wr->num_sge) { /* as siw */
		rc = EINVAL;
	} else {
		struct fake_work *work = work_make(wr->wr_id, wr->sg_list, wr->num_sge);

		work->is_recv = true;
		work_add(&srq->recvs, work);
		serve_senders(ibv_srq, 0);
	}
	pthread_mutex_unlock(&fake_lock);
	return rc;
}
