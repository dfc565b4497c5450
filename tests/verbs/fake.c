// SPDX-License-Identifier: BSD-2-Clause
/* The stand-in: its settings, faults, and the device with its events (fake.h). */
#include "fake_inner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
void (*fake_other_ops)(struct ibv_context_ops *ops);
uint32_t fake_vendor = FAKE_VENDOR;
struct ibv_context fake_context;
uint32_t fake_last_number = 100;
static struct ibv_device fake_device;
static bool is_iwarp, is_rxe, is_port_down;
static bool has_windows = true, has_srqs = true;
static int live;
static unsigned calls, fail_at;
static const char *fail_name; /* the call that fails next; NULL: call number fail_at does */
static int fail_error;
static const char *failed;
static _Thread_local unsigned cancellable;

struct fake_async_event {
	struct ibv_async_event event;
	struct fake_async_event *next;
};
static struct fake_async_event *asyncs;
static bool is_holding, is_held; /* fake_hold; a thread waits for it */
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

unsigned fake_read_count(const unsigned *count)
{
	unsigned value;

	pthread_mutex_lock(&fake_lock);
	value = *count;
	pthread_mutex_unlock(&fake_lock);
	return value;
}

/* --- settings --- */

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

void fake_srqs(bool has)
{
	has_srqs = has;
}

bool fake_is_iwarp(void)
{
	return is_iwarp;
}

void fake_be_vendor(uint32_t vendor)
{
	fake_vendor = vendor ? vendor : FAKE_VENDOR;
}

unsigned fake_cancellable(void)
{
	return cancellable;
}

/* In a real library this may be a cancellation point. */
void fake_count_cancellable(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_setcancelstate(state, NULL);
	cancellable += state == PTHREAD_CANCEL_ENABLE;
}

/* The device does this, not the thread that has posted, so it must not be cancelled here. */
void fake_signal(int fd)
{
	const uint64_t one = 1;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (write(fd, &one, sizeof(one)) < 0 && errno != EBADF) /* the program has closed it */
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

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	static const unsigned char guid[8] = {0, 1, 2, 3, 4, 5, 6, 0xfe};
	__be64 number;

	(void)device;
	memcpy(&number, guid, sizeof(guid));
	return number;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	(void)context;
	memset(gid->raw, 0, sizeof(gid->raw));
	gid->raw[0] = 0xfe;
	gid->raw[1] = 0x80;
	gid->raw[14] = port_num;
	gid->raw[15] = (unsigned char)index;
	return 0;
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
				     .active_mtu = IBV_MTU_2048,
				     .max_msg_sz = FAKE_MESSAGE_MAX >> port_num,
				     .link_layer = IBV_LINK_LAYER_ETHERNET};

	(void)context;
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
	attr->atomic_cap = is_iwarp ? IBV_ATOMIC_NONE : IBV_ATOMIC_HCA;
	if (has_srqs) {
		attr->max_srq = 256;
		attr->max_srq_wr = 8192;
		attr->max_srq_sge = 16;
	}
	attr->vendor_id = is_rxe ? 0xffffff : fake_vendor;
	if (has_windows && !getenv("FAKE_NO_WINDOWS")) {
		attr->max_mw = 65536;
		attr->device_cap_flags = IBV_DEVICE_MEM_WINDOW;
	}
	return 0;
}

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
		fake_context.ops.poll_cq = fake_poll_cq;
		fake_context.ops.req_notify_cq = fake_req_notify_cq;
		fake_context.ops.post_send = fake_post_send;
		fake_context.ops.post_recv = fake_post_recv;
		fake_context.ops.post_srq_recv = fake_post_srq_recv;
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

/* The number of events of the object that the event names, if it is one that counts them. */
static unsigned *count_of(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return &((struct fake_qp *)event->element.qp)->events;
	case IBV_EVENT_SRQ_ERR:
		return &((struct fake_srq *)event->element.srq)->events;
	default:
		return NULL;
	}
}

static void async_add(const struct ibv_async_event *event)
{
	struct fake_async_event *added = calloc(1, sizeof(*added));
	struct fake_async_event **link = &asyncs;
	unsigned *count = count_of(event);

	added->event = *event;
	while (*link)
		link = &(*link)->next;
	*link = added;
	if (count)
		(*count)++;
	fake_signal(fake_context.async_fd);
}

void fake_async_locked(enum ibv_event_type type, struct ibv_qp *qp)
{
	const struct ibv_async_event event = {.event_type = type, .element.qp = qp};

	async_add(&event);
}

void fake_async_of_srq_locked(struct ibv_srq *srq)
{
	const struct ibv_async_event event = {.event_type = IBV_EVENT_SRQ_ERR, .element.srq = srq};

	async_add(&event);
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
		/* an event that the provider ignores */
		fake_async_locked(IBV_EVENT_GID_CHANGE, NULL);
	while (hold && !is_held)
		pthread_cond_wait(&hold_changed, &fake_lock);
	pthread_mutex_unlock(&fake_lock);
}

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
		if (event->event_type == IBV_EVENT_QP_LAST_WQE_REACHED)
			fake_flush_held((struct fake_qp *)event->element.qp);
	}
	pthread_mutex_unlock(&fake_lock);
	errno = EAGAIN;
	return first ? 0 : -1;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	unsigned *count;

	pthread_mutex_lock(&fake_lock);
	count = count_of(event);
	if (count)
		(*count)--;
	pthread_mutex_unlock(&fake_lock);
}

unsigned fake_unread_events(void)
{
	unsigned count = 0;

	pthread_mutex_lock(&fake_lock);
	for (const struct fake_async_event *event = asyncs; event; event = event->next)
		count++;
	pthread_mutex_unlock(&fake_lock);
	return count;
}

void fake_drop_events(const void *object, const unsigned *events)
{
	struct fake_async_event **link = &asyncs;

	while (*link) {
		struct fake_async_event *event = *link;
		unsigned *count = count_of(&event->event);

		if (!count || (const void *)event->event.element.qp != object) {
			link = &event->next;
			continue;
		}
		*link = event->next;
		free(event);
		(*count)--;
	}
	while (*events) {
		pthread_mutex_unlock(&fake_lock);
		usleep(100);
		pthread_mutex_lock(&fake_lock);
	}
}
