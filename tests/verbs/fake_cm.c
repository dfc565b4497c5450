// SPDX-License-Identifier: BSD-2-Clause
/* The stand-in's connection manager (fake.h). Every event is in a channel's queue before the call
 * that caused it returns. */
#include "fake_inner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FIRST_PORT 40000u

struct fake_id;

struct fake_event {
	struct rdma_cm_event event;
	uint8_t data[256];
	struct fake_id *owner; /* whose count it is in */
	struct fake_event *next;
};

struct fake_cm_channel {
	struct rdma_event_channel channel;
	struct fake_event *first;
};

enum fake_id_state {
	ID_IDLE,
	ID_LISTENING,
	ID_CALLING,
	ID_ASKED,
	ID_ACCEPTED,
	ID_CONNECTED,
	ID_OVER,
};

struct fake_id {
	struct rdma_cm_id id;
	enum fake_id_state state;
	uint16_t port;
	struct fake_id *peer;
	uint32_t qp_num;
	struct rdma_conn_param param; /* of its connect or accept */
	unsigned unacked;
	struct fake_id *next;
};

static struct fake_id *ids;
static uint16_t last_port = FIRST_PORT;
static _Atomic unsigned requests;

/* --- channels and events --- */

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct fake_cm_channel *channel = NULL;

	pthread_mutex_lock(&fake_lock);
	if (!fake_fails(__func__, EMFILE)) {
		channel = calloc(1, sizeof(*channel));
		channel->channel.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		fake_count(1);
	}
	pthread_mutex_unlock(&fake_lock);
	return channel ? &channel->channel : NULL;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	pthread_mutex_lock(&fake_lock);
	fake_count(-1);
	pthread_mutex_unlock(&fake_lock);
	close(channel->fd);
	free(channel);
}

static struct fake_event *tell(struct fake_id *id, enum rdma_cm_event_type type, int status,
			       const struct rdma_conn_param *param, uint8_t size)
{
	struct fake_cm_channel *channel = (struct fake_cm_channel *)id->id.channel;
	struct fake_event *event = calloc(1, sizeof(*event));
	struct fake_event **link = &channel->first;

	event->event.id = &id->id;
	event->event.event = type;
	event->event.status = status;
	event->owner = id;
	if (param) {
		event->event.param.conn = *param;
		/* what one side serves is what the other may ask for */
		event->event.param.conn.responder_resources = param->initiator_depth;
		event->event.param.conn.initiator_depth = param->responder_resources;
		if (param->private_data_len)
			memcpy(event->data, param->private_data, param->private_data_len);
		event->event.param.conn.private_data = event->data;
		event->event.param.conn.private_data_len = size;
	}
	while (*link)
		link = &(*link)->next;
	*link = event;
	fake_signal(channel->channel.fd);
	return event;
}

int rdma_get_cm_event(struct rdma_event_channel *ibv_channel, struct rdma_cm_event **event_out)
{
	struct fake_cm_channel *channel = (struct fake_cm_channel *)ibv_channel;
	struct fake_event *event;

	pthread_mutex_lock(&fake_lock);
	event = channel->first;
	if (event) {
		channel->first = event->next;
		event->owner->unacked++;
		*event_out = &event->event;
	} else {
		fake_unsignal(ibv_channel->fd);
		errno = EAGAIN;
	}
	pthread_mutex_unlock(&fake_lock);
	return event ? 0 : -1;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	pthread_mutex_lock(&fake_lock);
	((struct fake_event *)event)->owner->unacked--;
	pthread_mutex_unlock(&fake_lock);
	free(event);
	return 0;
}

const char *rdma_event_str(enum rdma_cm_event_type type)
{
	(void)type;
	return "event";
}

/* --- ids --- */

static struct fake_id *id_make(struct rdma_event_channel *channel, void *context)
{
	struct fake_id *id = calloc(1, sizeof(*id));

	id->id.channel = channel;
	id->id.context = context;
	id->id.ps = RDMA_PS_TCP;
	id->id.port_num = 1;
	id->next = ids;
	ids = id;
	fake_count(1);
	return id;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id_out, void *context,
		   enum rdma_port_space ps)
{
	int rc = -1;

	(void)ps;
	pthread_mutex_lock(&fake_lock);
	if (!fake_fails(__func__, ENOMEM)) {
		*id_out = &id_make(channel, context)->id;
		rc = 0;
	}
	pthread_mutex_unlock(&fake_lock);
	return rc;
}

/* What its owner's death tells the other side. */
static void leave_peer(struct fake_id *id)
{
	struct fake_id *peer = id->peer;

	if (!peer)
		return;
	id->peer = NULL;
	peer->peer = NULL;
	if (id->state == ID_ASKED)
		tell(peer, RDMA_CM_EVENT_REJECTED, 28, NULL, 0);
	else if (id->state == ID_CALLING)
		tell(peer, RDMA_CM_EVENT_REJECTED, 4, NULL, 0);
	else if (id->state == ID_ACCEPTED || id->state == ID_CONNECTED)
		tell(peer, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
}

void fake_time_out(void)
{
	struct fake_id *id;

	pthread_mutex_lock(&fake_lock);
	for (id = ids; id && id->state != ID_CALLING; id = id->next)
		;
	if (id)
		tell(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL, 0);
	pthread_mutex_unlock(&fake_lock);
}

void fake_reject_late(void)
{
	struct fake_id *id;

	pthread_mutex_lock(&fake_lock);
	for (id = ids; id && id->state != ID_CONNECTED; id = id->next)
		;
	if (id)
		tell(id, RDMA_CM_EVENT_REJECTED, 28, NULL, 0);
	pthread_mutex_unlock(&fake_lock);
}

unsigned fake_requests(void)
{
	return requests;
}

/* Its events that nobody has fetched, and requests that it listens for. */
static void drop_events(struct fake_id *id)
{
	struct fake_cm_channel *channel = (struct fake_cm_channel *)id->id.channel;
	struct fake_event **link = &channel->first;

	while (*link) {
		struct fake_event *event = *link;

		if (event->owner != id) {
			link = &event->next;
			continue;
		}
		*link = event->next;
		free(event);
	}
}

static void id_unlink(struct fake_id *id)
{
	struct fake_id **link = &ids;

	while (*link != id)
		link = &(*link)->next;
	*link = id->next;
	fake_count(-1);
}

/* A request whose listener went before anybody saw it. */
static void refuse_unseen(struct fake_id *listener)
{
	struct fake_cm_channel *channel = (struct fake_cm_channel *)listener->id.channel;

	for (struct fake_event *event = channel->first; event; event = event->next) {
		struct fake_id *id = (struct fake_id *)event->event.id;

		if (event->owner != listener || id == listener)
			continue;
		leave_peer(id);
		id_unlink(id);
		free(id);
	}
}

int rdma_destroy_id(struct rdma_cm_id *ibv_id)
{
	struct fake_id *id = (struct fake_id *)ibv_id;

	pthread_mutex_lock(&fake_lock);
	if (id->state == ID_LISTENING)
		refuse_unseen(id);
	leave_peer(id);
	drop_events(id);
	id_unlink(id);
	while (id->unacked) {
		pthread_mutex_unlock(&fake_lock);
		usleep(100);
		pthread_mutex_lock(&fake_lock);
	}
	pthread_mutex_unlock(&fake_lock);
	free(id);
	return 0;
}

static struct sockaddr_in *in_of(struct sockaddr *address)
{
	return (struct sockaddr_in *)(void *)address;
}

int rdma_bind_addr(struct rdma_cm_id *ibv_id, struct sockaddr *address)
{
	struct fake_id *id = (struct fake_id *)ibv_id;
	int rc = -1;

	pthread_mutex_lock(&fake_lock);
	if (!fake_fails(__func__, ENODEV)) {
		rc = 0;
		id->port = ntohs(in_of(address)->sin_port);
		for (struct fake_id *other = ids; other && id->port; other = other->next) {
			if (other != id && other->state == ID_LISTENING &&
			    other->port == id->port) {
				errno = EADDRINUSE;
				rc = -1;
			}
		}
		if (!id->port) {
			id->port = last_port;
			last_port =
				last_port == UINT16_MAX ? FIRST_PORT : (uint16_t)(last_port + 1);
		}
		ibv_id->verbs = fake_open();
		memcpy(&ibv_id->route.addr.src_addr, address, sizeof(struct sockaddr_in));
		in_of(&ibv_id->route.addr.src_addr)->sin_port = htons(id->port);
	}
	pthread_mutex_unlock(&fake_lock);
	return rc;
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return in_of(&id->route.addr.src_addr)->sin_port;
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return in_of(&id->route.addr.dst_addr)->sin_port;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to,
		      int timeout_ms)
{
	bool is_known =
		in_of(to)->sin_addr.s_addr == in_of(&id->route.addr.src_addr)->sin_addr.s_addr;
	int rc = -1;

	(void)from;
	(void)timeout_ms;
	pthread_mutex_lock(&fake_lock);
	if (!fake_fails(__func__, ENETUNREACH)) {
		memcpy(&id->route.addr.dst_addr, to, sizeof(struct sockaddr_in));
		tell((struct fake_id *)id,
		     is_known ? RDMA_CM_EVENT_ADDR_RESOLVED : RDMA_CM_EVENT_ADDR_ERROR,
		     is_known ? 0 : -EHOSTUNREACH, NULL, 0);
		rc = 0;
	}
	pthread_mutex_unlock(&fake_lock);
	return rc;
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	int rc = -1;

	(void)timeout_ms;
	pthread_mutex_lock(&fake_lock);
	if (!fake_fails(__func__, ENETUNREACH)) {
		tell((struct fake_id *)id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL, 0);
		rc = 0;
	}
	pthread_mutex_unlock(&fake_lock);
	return rc;
}

int rdma_init_qp_attr(struct rdma_cm_id *ibv_id, struct ibv_qp_attr *attr, int *mask)
{
	struct fake_id *id = (struct fake_id *)ibv_id;
	int rc = -1;

	pthread_mutex_lock(&fake_lock);
	if (!fake_fails(__func__, EINVAL)) {
		*mask = IBV_QP_STATE;
		if (attr->qp_state == IBV_QPS_RTR && id->peer) {
			attr->dest_qp_num = id->peer->qp_num;
			*mask |= IBV_QP_DEST_QPN;
		}
		if (attr->qp_state == IBV_QPS_RTS)
			*mask |= IBV_QP_MAX_QP_RD_ATOMIC;
		rc = 0;
	}
	pthread_mutex_unlock(&fake_lock);
	return rc;
}

/* --- set-up --- */

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	int rc = -1;

	(void)backlog;
	pthread_mutex_lock(&fake_lock);
	if (!fake_fails(__func__, ENOMEM)) {
		((struct fake_id *)id)->state = ID_LISTENING;
		rc = 0;
	}
	pthread_mutex_unlock(&fake_lock);
	return rc;
}

static struct fake_id *find_listener(uint16_t port)
{
	struct fake_id *id = ids;

	while (id && (id->state != ID_LISTENING || id->port != port))
		id = id->next;
	return id;
}

/* The connection manager of InfiniBand pads, and carries no more than this. */
static int request_size(const struct rdma_conn_param *param)
{
	if (fake_is_iwarp())
		return param->private_data_len;
	return param->private_data_len > 56 ? -1 : 56;
}

static void call(struct fake_id *id, struct rdma_conn_param *param, int size)
{
	struct fake_id *listener = find_listener(ntohs(rdma_get_dst_port(&id->id)));
	struct fake_event *event;
	struct fake_id *child;

	if (!listener) {
		tell(id, RDMA_CM_EVENT_REJECTED, fake_is_iwarp() ? -ECONNREFUSED : 8, NULL, 0);
		return;
	}
	child = id_make(listener->id.channel, listener->id.context);
	child->id.verbs = fake_open();
	child->id.route.addr.src_addr = id->id.route.addr.dst_addr;
	child->id.route.addr.dst_addr = id->id.route.addr.src_addr;
	child->state = ID_ASKED;
	child->peer = id;
	id->peer = child;
	requests++;
	event = tell(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0, param, (uint8_t)size);
	event->event.id = &child->id;
	event->event.listen_id = &listener->id;
}

int rdma_connect(struct rdma_cm_id *ibv_id, struct rdma_conn_param *param)
{
	struct fake_id *id = (struct fake_id *)ibv_id;
	int size = request_size(param);
	int rc = -1;

	pthread_mutex_lock(&fake_lock);
	errno = EINVAL;
	if (size >= 0 && !fake_fails(__func__, ENOMEM)) {
		id->state = ID_CALLING;
		id->qp_num = param->qp_num;
		call(id, param, size);
		rc = 0;
	}
	pthread_mutex_unlock(&fake_lock);
	return rc;
}

static void iwarp_up(struct fake_id *id)
{
	struct fake_qp *a = fake_qp_by_number(id->qp_num);
	struct fake_qp *b = fake_qp_by_number(id->peer->qp_num);

	id->state = ID_CONNECTED;
	id->peer->state = ID_CONNECTED;
	if (!a || !b)
		return;
	a->remote = id->peer->qp_num;
	b->remote = id->qp_num;
	a->state = IBV_QPS_RTS;
	b->state = IBV_QPS_RTS;
}

int rdma_accept(struct rdma_cm_id *ibv_id, struct rdma_conn_param *param)
{
	struct fake_id *id = (struct fake_id *)ibv_id;
	int rc = -1;

	pthread_mutex_lock(&fake_lock);
	errno = ECONNRESET;
	if (!fake_fails(__func__, ENOMEM) && id->peer) {
		id->qp_num = param->qp_num;
		id->state = ID_ACCEPTED;
		if (fake_is_iwarp()) {
			iwarp_up(id);
			tell(id->peer, RDMA_CM_EVENT_ESTABLISHED, 0, param,
			     param->private_data_len);
			tell(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
		} else {
			tell(id->peer, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, param, 196);
		}
		rc = 0;
	}
	pthread_mutex_unlock(&fake_lock);
	return rc;
}

int rdma_establish(struct rdma_cm_id *ibv_id)
{
	struct fake_id *id = (struct fake_id *)ibv_id;
	int rc = -1;

	pthread_mutex_lock(&fake_lock);
	errno = ECONNRESET;
	if (!fake_fails(__func__, ENOMEM) && id->peer) {
		id->state = ID_CONNECTED;
		id->peer->state = ID_CONNECTED;
		tell(id->peer, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
		rc = 0;
	}
	pthread_mutex_unlock(&fake_lock);
	return rc;
}

int rdma_reject(struct rdma_cm_id *ibv_id, const void *data, uint8_t size)
{
	struct rdma_conn_param param = {.private_data = data, .private_data_len = size};
	struct fake_id *id = (struct fake_id *)ibv_id;

	pthread_mutex_lock(&fake_lock);
	if (id->peer) {
		tell(id->peer, RDMA_CM_EVENT_REJECTED, fake_is_iwarp() ? -ECONNRESET : 28, &param,
		     fake_is_iwarp() ? size : 148);
		id->peer->peer = NULL;
		id->peer = NULL;
		id->state = ID_OVER;
	}
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int rdma_disconnect(struct rdma_cm_id *ibv_id)
{
	struct fake_id *id = (struct fake_id *)ibv_id;
	struct fake_qp *qp;

	pthread_mutex_lock(&fake_lock);
	qp = fake_qp_by_number(id->qp_num);
	if (fake_is_iwarp() && qp)
		fake_qp_error(qp);
	if (id->peer && (id->state == ID_CONNECTED || id->state == ID_ACCEPTED)) {
		struct fake_qp *other = fake_qp_by_number(id->peer->qp_num);

		tell(id->peer, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
		tell(id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
		if (fake_is_iwarp() && other) /* the end of the stream flushes */
			fake_qp_error(other);
		id->peer->peer = NULL;
		id->peer = NULL;
		id->state = ID_OVER;
	}
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type type)
{
	pthread_mutex_lock(&fake_lock);
	if (type == IBV_EVENT_COMM_EST)
		tell((struct fake_id *)id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

void fake_remove(void)
{
	pthread_mutex_lock(&fake_lock);
	for (struct fake_id *id = ids; id; id = id->next)
		if (id->id.context && id->state != ID_LISTENING)
			tell(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0, NULL, 0);
	pthread_mutex_unlock(&fake_lock);
}
