// SPDX-License-Identifier: BSD-2-Clause
/*
 * A pair of processes of which one, the victim, ends without a disconnect.
 */
#ifndef TESTS_PEER_DEATH_H
#define TESTS_PEER_DEATH_H

#include "conn_remote.h"

struct fixture {
	struct conn_fixture *f;
	struct dt_peer victim;
	struct dt_peer next; /* to show that the survivor can connect again */
};

static inline int setup(void **state)
{
	static struct fixture fixture;
	void *f;

	memset(&fixture, 0, sizeof(fixture));
	remote_start(&fixture.victim);
	remote_start(&fixture.next);
	conn_setup(&f);
	fixture.f = f;
	*state = &fixture;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *x = *state;
	void *f = x->f;

	if (x->victim.pid > 0)
		dt_peer_kill(&x->victim);
	if (x->next.pid > 0)
		dt_peer_kill(&x->next);
	return conn_teardown(&f);
}

/* On one host a death is never reported as a disconnect (EP-STATE-44). */
static inline void check_end_of_connection(DAT_EVENT_NUMBER number)
{
	if (strcmp(dt_adapter(), "soft-lo") != 0 && number == DAT_CONNECTION_EVENT_DISCONNECTED)
		return;
	assert_int_equal(number, DAT_CONNECTION_EVENT_BROKEN);
}

/* Resets b, connects it to the next process and transfers data both ways. */
static inline void check_next_one(struct fixture *x)
{
	struct conn_fixture *f = x->f;

	dt_ok(dat_ep_reset(f->b.ep));
	remote_do(&x->next, REMOTE_POST_RECV, 1, 0);
	remote_connect(&x->next, f->listener.qual);
	dt_ok(dat_cr_accept(dt_request(&f->listener), f->b.ep, 0, NULL));
	dt_expect_conn(f->b.conn, f->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	remote_expect(&x->next, DAT_CONNECTION_EVENT_ESTABLISHED);
	conn_post_send(f->b.ep, &f->buf, CONN_B_SENDS_AT, 1);
	dt_expect_dto(f->b.request, f->b.ep, 1, DAT_DTO_SUCCESS, DT_ANY_LEN);
	assert_int_equal(remote_do(&x->next, REMOTE_RECEIVED, 0, 0), DAT_DTO_SUCCESS);
	conn_stays_quiet(&f->b);
	dt_no_event(f->ia.async);
}

static inline void link_passive(struct fixture *x)
{
	struct remote_fixture r = {.f = x->f, .peer = x->victim};

	remote_link_passive(&r);
}

static inline void link_active(struct fixture *x)
{
	struct remote_fixture r = {.f = x->f, .peer = x->victim};

	remote_link_active(&r);
}

#endif
