// SPDX-License-Identifier: BSD-2-Clause
/*
 * A process that sends messages on order, and the connected endpoint that waits for them.
 */
#ifndef TESTS_EVD_SLEEP_H
#define TESTS_EVD_SLEEP_H

#include "conf.h"

#include <stdatomic.h>
#include <stdlib.h>

#define DEPTH 8
#define SIZE 8

enum order {
	SEND,	     /* send one message */
	SEND_LATER,  /* the same after about `how` microseconds */
	SEND_ANSWER, /* answer each message, until `how` of them have arrived */
	END,
};

struct order_msg {
	enum order order;
	uint32_t how;
};

struct opening {
	DAT_CONN_QUAL qual;
};

static inline void spin_us(uint32_t us)
{
	const uint64_t end = dt_now_us() + us;

	while (dt_now_us() < end)
		continue;
}

static inline void send_one(struct dt_ep *ep, struct dt_buf *buf, uint64_t number)
{
	DAT_LMR_TRIPLET seg = dt_seg(buf, DEPTH * SIZE, SIZE);

	memcpy(buf->p + DEPTH * SIZE, &number, SIZE);
	dt_ok(dat_ep_post_send(ep->ep, 1, &seg, dt_cookie(number), DAT_COMPLETION_DEFAULT_FLAG));
}

static inline void post_recv(struct dt_ep *ep, struct dt_buf *buf, uint64_t number)
{
	DAT_LMR_TRIPLET seg = dt_seg(buf, number % DEPTH * SIZE, SIZE);

	dt_ok(dat_ep_post_recv(ep->ep, 1, &seg, dt_cookie(number), DAT_COMPLETION_DEFAULT_FLAG));
}

static inline void wait_event(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	DAT_COUNT more;

	dt_ok(dat_evd_wait(evd, DT_WAIT_US, 1, event, &more));
}

static inline void sender(struct dt_peer *peer, void *arg)
{
	uint64_t sent = 0, received = 0;
	struct opening opening;
	struct order_msg msg;
	struct dt_ia ia;
	struct dt_ep ep;
	struct dt_buf buf;
	DAT_EVENT event;

	(void)arg;
	dt_peer_recv(peer, &opening, sizeof(opening));
	dt_ia_open(&ia);
	dt_buf_create(&ia, ia.pz, &buf, (DEPTH + 1) * SIZE, CONF_LOCAL);
	dt_ep_create(&ia, ia.pz, NULL, &ep);
	for (uint64_t i = 0; i < DEPTH; i++)
		post_recv(&ep, &buf, i);
	dt_connect(&ia, ep.ep, opening.qual);
	dt_expect_conn(ep.conn, ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	for (;;) {
		dt_peer_recv(peer, &msg, sizeof(msg));
		if (msg.order == END)
			break;
		if (msg.order == SEND_LATER)
			spin_us(msg.how);
		for (uint32_t i = 0; i < (msg.order == SEND_ANSWER ? msg.how : 1); i++) {
			if (msg.order == SEND_ANSWER) {
				wait_event(ep.recv, &event);
				post_recv(&ep, &buf, received++);
			}
			send_one(&ep, &buf, sent++);
			wait_event(ep.request, &event);
		}
	}
	dt_ep_free(&ep);
	dt_buf_free(&buf);
	dt_ia_close(&ia);
}

struct stage {
	struct dt_peer peer;
	struct dt_ia ia;
	struct dt_ep ep;
	struct dt_buf buf;
	uint64_t received, sent;
	_Atomic uint64_t completed; /* requests whose completion another thread has taken */
};

static inline int open_stage(void **state)
{
	struct stage *s = calloc(1, sizeof(*s));
	struct dt_listener listener;
	struct opening opening;

	assert_non_null(s);
	dt_peer_start(&s->peer, sender, NULL);
	dt_ia_open(&s->ia);
	dt_buf_create(&s->ia, s->ia.pz, &s->buf, (DEPTH + 1) * SIZE, CONF_LOCAL);
	dt_ep_create(&s->ia, s->ia.pz, NULL, &s->ep);
	for (uint64_t i = 0; i < DEPTH; i++)
		post_recv(&s->ep, &s->buf, i);
	dt_listen(&s->ia, &listener);
	opening.qual = listener.qual;
	dt_peer_send(&s->peer, &opening, sizeof(opening));
	dt_ok(dat_cr_accept(dt_request(&listener), s->ep.ep, 0, NULL));
	dt_expect_conn(s->ep.conn, s->ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	dt_unlisten(&listener);
	*state = s;
	return 0;
}

static inline void order(struct stage *s, enum order order, uint32_t how)
{
	const struct order_msg msg = {order, how};

	dt_peer_send(&s->peer, &msg, sizeof(msg));
}

static inline int close_stage(void **state)
{
	struct stage *s = *state;

	order(s, END, 0);
	dt_expect_conn(s->ep.conn, s->ep.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_peer_join(&s->peer);
	dt_ep_free(&s->ep);
	dt_buf_free(&s->buf);
	dt_ia_close(&s->ia);
	free(s);
	return 0;
}

/* Checks the next message in order. */
static inline void check_message(struct stage *s, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	uint64_t number;

	assert_int_equal(event->event_number, DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(dto->status, DAT_DTO_SUCCESS);
	memcpy(&number, s->buf.p + s->received % DEPTH * SIZE, SIZE);
	assert_true(number == s->received);
	post_recv(&s->ep, &s->buf, s->received++);
}

static inline void on_signal(int number)
{
	(void)number;
}

#define STAGED(test) cmocka_unit_test_setup_teardown(test, open_stage, close_stage)

#endif
