// SPDX-License-Identifier: BSD-2-Clause
/* What the two files of the stand-in's connection manager share. All is called with the lock held.
 */
#ifndef TESTS_VERBS_FAKE_CM_H
#define TESTS_VERBS_FAKE_CM_H

#include "fake_inner.h"

struct fake_id;

struct fake_event {
	struct rdma_cm_event event;
	uint8_t data[256];
	struct fake_id *owner; /* counts it in `unacked` */
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

extern struct fake_id *fake_ids;

struct fake_event *fake_cm_report(struct fake_id *id, enum rdma_cm_event_type type, int status,
				  const struct rdma_conn_param *param, uint8_t size);
struct fake_id *fake_id_make(struct rdma_event_channel *channel, void *context);

#endif
