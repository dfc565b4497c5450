// SPDX-License-Identifier: BSD-2-Clause
/*
 * The owner of a window that another process writes through, and the three ways to end the window.
 */
#ifndef TESTS_WINDOW_OWNER_H
#define TESTS_WINDOW_OWNER_H

#include "window_writer.h"

#define PEER_TIMEOUT_MS 700
#define SLACK_US 5000000u

struct stage {
	struct rig rig; /* a is connected to the writer, b to the mate; b makes the binds */
	struct dt_ep mate;
	struct dt_peer peer;
	DAT_RMR_HANDLE rmr;
	struct dt_buf old, next;
	DAT_RMR_CONTEXT context;
	unsigned char snapshot[WINDOW];
};

static struct stage stage_of_test;

static inline struct stage *stage_open(void)
{
	struct stage *stage = &stage_of_test;
	struct rig *rig = &stage->rig;

	memset(stage, 0, sizeof(*stage));
	dt_peer_start(&stage->peer, writer, NULL);
	rig_begin(rig);
	(void)far_connect(rig, &stage->peer);
	dt_ep_create(&rig->ia, rig->ia.pz, NULL, &rig->b);
	dt_ep_create(&rig->ia, rig->ia.pz, NULL, &stage->mate);
	dt_ep_link(&rig->ia, &rig->b, &stage->mate);
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, WINDOW, BIND_LOCAL, &stage->old);
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->x.p, WINDOW, BIND_LOCAL, &stage->next);
	stage->rmr = rmr_create(rig);
	stage->context = bind_now(&rig->b, stage->rmr, dt_seg(&stage->old, 0, WINDOW), BIND_REMOTE);
	return stage;
}

static inline void stage_close(struct stage *stage)
{
	const struct order end = {.verb = END};

	dt_peer_send(&stage->peer, &end, sizeof(end));
	dt_peer_join(&stage->peer);
	rig_end(&stage->rig);
}

static inline void send_order_with(struct stage *stage, enum verb verb, unsigned warm_up_us)
{
	const struct order order = {verb, warm_up_us,
				    y_seg(&stage->rig, stage->context, 0, WINDOW)};

	dt_peer_send(&stage->peer, &order, sizeof(order));
}

static inline void send_order(struct stage *stage, enum verb verb)
{
	send_order_with(stage, verb, 0);
}

static inline DAT_DTO_COMPLETION_STATUS await_status(struct stage *stage)
{
	DAT_DTO_COMPLETION_STATUS status;

	dt_peer_recv(&stage->peer, &status, sizeof(status));
	return status;
}

static inline void snapshot(struct stage *stage)
{
	memcpy(stage->snapshot, stage->rig.y.p, WINDOW);
}

static inline size_t changed_since(struct stage *stage)
{
	size_t changed = 0;

	for (size_t i = 0; i < WINDOW; i++)
		changed += stage->rig.y.p[i] != stage->snapshot[i];
	return changed;
}

static inline void writer_broken(struct stage *stage)
{
	dt_expect_conn(stage->rig.a.conn, stage->rig.a.ep, DAT_CONNECTION_EVENT_BROKEN);
}

enum way { FREE, REBIND, UNBIND };
#define WAYS 3

/* Makes the call. The completion of a bind is still due. */
static inline void start_end(struct stage *stage, enum way way)
{
	if (way == FREE)
		dt_ok(dat_rmr_free(stage->rmr));
	else if (way == REBIND)
		(void)bind_post(&stage->rig.b, stage->rmr, dt_seg(&stage->next, 0, WINDOW),
				BIND_REMOTE, 7, 0);
	else
		unbind_post(&stage->rig.b, stage->rmr, 7);
}

static inline void end_window(struct stage *stage, enum way way)
{
	start_end(stage, way);
	if (way != FREE)
		expect_bind(&stage->rig.b, stage->rmr, 7, DAT_DTO_SUCCESS);
}

/* The region is unused now, and other endpoints and regions work. */
static inline void check_after(struct stage *stage)
{
	struct rig own = stage->rig;

	dt_ok(dat_lmr_free(stage->old.lmr));
	own.a = stage->mate;
	rig_works(&own);
}

/* Reads a byte while the other process writes it. A race, and harmless for one byte. */
__attribute__((no_sanitize("thread"), noinline)) static unsigned char peek(const unsigned char *p)
{
	return *(const volatile unsigned char *)p;
}

struct watch {
	const unsigned char *p;
	unsigned char seen;
};

static inline bool has_changed(void *arg)
{
	struct watch *watch = arg;

	return peek(watch->p) != watch->seen;
}

static inline void start_writing(struct stage *stage)
{
	struct watch watch = {.p = stage->rig.y.p + WINDOW - 1};
	char ready;

	send_order(stage, WRITE_REPEATEDLY);
	dt_peer_recv(&stage->peer, &ready, 1);
	for (int change = 0; change < 3; change++) {
		watch.seen = peek(watch.p);
		dt_until(has_changed, &watch);
	}
}

#endif
