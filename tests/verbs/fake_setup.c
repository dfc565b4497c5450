// SPDX-License-Identifier: BSD-2-Clause
/* The stand-in's connection manager: how connections are set up and end (fake_cm.c). */
#include "fake_cm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Atomic unsigned requests;

unsigned fake_requests(void)
{
	return requests;
}

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
	struct fake_id *id = fake_ids;

	while (id && (id->state != ID_LISTENING || id->port != port))
		id = id->next;
	return id;
}

/* Size of a request's private data: InfiniBand's connection manager pads it, and has this limit. */
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
		fake_cm_report(id, RDMA_CM_EVENT_REJECTED, fake_is_iwarp() ? -ECONNREFUSED : 8,
			       NULL, 0);
		return;
	}
	child = fake_id_make(listener->id.channel, listener->id.context);
	child->id.verbs = fake_open();
	child->id.route.addr.src_addr = id->id.route.addr.dst_addr;
	child->id.route.addr.dst_addr = id->id.route.addr.src_addr;
	child->state = ID_ASKED;
	child->peer = id;
	id->peer = child;
	requests++;
	event = fake_cm_report(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0, param, (uint8_t)size);
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
			fake_cm_report(id->peer, RDMA_CM_EVENT_ESTABLISHED, 0, param,
				       param->private_data_len);
			fake_cm_report(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
		} else {
			fake_cm_report(id->peer, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, param, 196);
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
		fake_cm_report(id->peer, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
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
		fake_cm_report(id->peer, RDMA_CM_EVENT_REJECTED, fake_is_iwarp() ? -ECONNRESET : 28,
			       &param, fake_is_iwarp() ? size : 148);
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

		fake_cm_report(id->peer, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
		fake_cm_report(id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
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
		fake_cm_report((struct fake_id *)id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

void fake_remove(void)
{
	pthread_mutex_lock(&fake_lock);
	for (struct fake_id *id = fake_ids; id; id = id->next)
		if (id->id.context && id->state != ID_LISTENING)
			fake_cm_report(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0, NULL, 0);
	pthread_mutex_unlock(&fake_lock);
}
