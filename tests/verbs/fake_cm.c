// SPDX-License-Identifier: BSD-2-Clause
/* The stand-in's connection manager (fake.h). Every event is in a channel's queue before the call
 * that caused it returns. */
#include "fake_cm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FIRST_PORT 40000u

struct fake_id *fake_ids;
static uint16_t last_port = FIRST_PORT;
static const void *foreign_data; /* NULL: none */
static uint8_t foreign_size;

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

void fake_be_foreign(const void *data, uint8_t size)
{
	pthread_mutex_lock(&fake_lock);
	foreign_data = data;
	foreign_size = size;
	pthread_mutex_unlock(&fake_lock);
}

static void make_foreign(struct fake_event *event)
{
	struct rdma_conn_param *param = &event->event.param.conn;

	if (fake_is_iwarp())
		param->private_data_len = foreign_size;
	memcpy(event->data, foreign_data,
	       foreign_size < param->private_data_len ? foreign_size : param->private_data_len);
}

struct fake_event *fake_cm_report(struct fake_id *id, enum rdma_cm_event_type type, int status,
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
		/* what one side serves, the other may start */
		event->event.param.conn.responder_resources = param->initiator_depth;
		event->event.param.conn.initiator_depth = param->responder_resources;
		if (param->private_data_len)
			memcpy(event->data, param->private_data, param->private_data_len);
		event->event.param.conn.private_data = event->data;
		event->event.param.conn.private_data_len = size;
		if (foreign_data && type != RDMA_CM_EVENT_REJECTED)
			make_foreign(event);
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

/* --- identifiers --- */

struct fake_id *fake_id_make(struct rdma_event_channel *channel, void *context)
{
	struct fake_id *id = calloc(1, sizeof(*id));

	id->id.channel = channel;
	id->id.context = context;
	id->id.ps = RDMA_PS_TCP;
	id->id.port_num = 1;
	id->next = fake_ids;
	fake_ids = id;
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
		*id_out = &fake_id_make(channel, context)->id;
		rc = 0;
	}
	pthread_mutex_unlock(&fake_lock);
	return rc;
}

/* Reports to the peer that the identifier is gone. */
static void leave_peer(struct fake_id *id)
{
	struct fake_id *peer = id->peer;

	if (!peer)
		return;
	id->peer = NULL;
	peer->peer = NULL;
	if (id->state == ID_ASKED)
		fake_cm_report(peer, RDMA_CM_EVENT_REJECTED, 28, NULL, 0);
	else if (id->state == ID_CALLING)
		fake_cm_report(peer, RDMA_CM_EVENT_REJECTED, 4, NULL, 0);
	else if (id->state == ID_ACCEPTED || id->state == ID_CONNECTED)
		fake_cm_report(peer, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
}

void fake_time_out(void)
{
	struct fake_id *id;

	pthread_mutex_lock(&fake_lock);
	for (id = fake_ids; id && id->state != ID_CALLING; id = id->next)
		;
	if (id)
		fake_cm_report(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL, 0);
	pthread_mutex_unlock(&fake_lock);
}

void fake_reject_late(void)
{
	struct fake_id *id;

	pthread_mutex_lock(&fake_lock);
	for (id = fake_ids; id && id->state != ID_CONNECTED; id = id->next)
		;
	if (id)
		fake_cm_report(id, RDMA_CM_EVENT_REJECTED, 28, NULL, 0);
	pthread_mutex_unlock(&fake_lock);
}

static bool is_leaving;

void fake_leave_next(void)
{
	pthread_mutex_lock(&fake_lock);
	is_leaving = true;
	pthread_mutex_unlock(&fake_lock);
}

void fake_leave_if_asked(const struct fake_qp *qp)
{
	struct fake_id *id = fake_ids;

	if (!is_leaving)
		return;
	is_leaving = false;
	while (id && (id->qp_num != qp->qp.qp_num || !id->peer))
		id = id->next;
	if (id)
		fake_cm_report(id->peer, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
}

/* Drops its events that were not read, and the requests that it listens for. */
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
	struct fake_id **link = &fake_ids;

	while (*link != id)
		link = &(*link)->next;
	*link = id->next;
	fake_count(-1);
}

/* Rejects the requests that were not reported before the listener was destroyed. */
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

/* 127.0.0.1 is the address of port 1, 127.0.0.2 that of port 2. */
static uint8_t port_of(struct sockaddr *address)
{
	return (uint8_t)ntohl(in_of(address)->sin_addr.s_addr);
}

int rdma_bind_addr(struct rdma_cm_id *ibv_id, struct sockaddr *address)
{
	struct fake_id *id = (struct fake_id *)ibv_id;
	int rc = -1;

	pthread_mutex_lock(&fake_lock);
	if (!fake_fails(__func__, ENODEV)) {
		rc = 0;
		id->port = ntohs(in_of(address)->sin_port);
		for (struct fake_id *other = fake_ids; other && id->port; other = other->next) {
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
		ibv_id->port_num = port_of(address);
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
		fake_cm_report((struct fake_id *)id,
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
		fake_cm_report((struct fake_id *)id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL, 0);
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
