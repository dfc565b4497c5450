// SPDX-License-Identifier: BSD-2-Clause
/*
 * The service thread of an adapter instance: set-up, ends, wake-ups, time-outs, and the progress of
 * connections that no thread polls; and the engine's own begin and end. The thread sleeps without
 * limit while every connection is armed and no deadline is set, so an idle process uses no CPU. All
 * signals are blocked in it.
 */
#include "soft/shm/engine/engine.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "core/transport.h"
#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/slab.h"
#include "soft/copy.h"
#include "soft/fds.h"
#include "soft/key.h"
#include "soft/soft.h"
#include "soft/shm/socket.h"
#include "soft/shm/state.h"
#include "soft/shm/bytes/wire.h"
#include "soft/shm/connect/dir.h"
#include "soft/shm/connect/listen.h"
#include "soft/shm/connect/revoke.h"
#include "soft/shm/connect/setup.h"
#include "soft/shm/engine/drive.h"
#include "soft/shm/transfer/map.h"

#define EVENTS 64
#define ARM_NS 1000000u /* until connections that could not be armed are tried again */
#define PACKETS_MAX 16u /* of one connection in a row */

static uint64_t driven_left(const struct shm_engine *engine, uint64_t now)
{
	return atomic_load(&engine->is_unattended) ? 0 : soft_driven_left(&engine->driven, now);
}

static bool is_driven(struct shm_engine *engine)
{
	return driven_left(engine, core_now_ns()) > 0;
}

/* --- the socket of a connection is readable --- */

/* The connection cannot continue; EP locked. */
static void give_up(struct shm_conn *conn, struct core_ep *ep)
{
	switch (shm_conn_state(conn)) {
	case SHM_CALLING:
	case SHM_REQUESTED:
		shm_conn_fail_setup(conn, ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		break;
	case SHM_ACCEPTED:
		shm_conn_fail_setup(conn, ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
		break;
	case SHM_ESTABLISHED:
		shm_conn_close(conn, DAT_CONNECTION_EVENT_BROKEN);
		/* fall through */
	default:
		shm_conn_finish(conn, ep);
	}
}

/* The peer sent CLOSE; EP locked. */
static void peer_closed(struct shm_conn *conn, struct core_ep *ep, uint32_t why)
{
	conn->end.peer = SHM_PEER_CLOSED;
	if (shm_conn_state(conn) == SHM_ESTABLISHED) {
		shm_drain(conn, ep);
		shm_conn_close(conn, why == SHM_WHY_DISCONNECT ? DAT_CONNECTION_EVENT_DISCONNECTED
							       : DAT_CONNECTION_EVENT_BROKEN);
	}
	give_up(conn, ep);
}

/* The socket ended: the peer is dead, or had closed before; EP locked. */
static void peer_gone(struct shm_conn *conn, struct core_ep *ep)
{
	conn->end.peer = SHM_PEER_GONE;
	if (shm_conn_state(conn) == SHM_ESTABLISHED)
		shm_drain(conn, ep);
	give_up(conn, ep);
}

/* The peer has published something: makes a pass. */
static void serve_published(struct shm_conn *conn, struct core_ep *ep)
{
	shm_conn_disarm(conn);
	shm_drive(conn, ep);
}

static void established_packet(struct shm_conn *conn, struct core_ep *ep, struct shm_packet *packet)
{
	const union shm_wire *wire = &packet->wire;

	switch (wire->head.type) {
	case SHM_WIRE_HURRY:
		serve_published(conn, ep);
		if (shm_conn_state(conn) == SHM_ESTABLISHED)
			shm_settle(conn, ep);
		return;
	case SHM_WIRE_WAKE:
	case SHM_WIRE_MAP_ASK: /* one_packet has answered it */
		break;
	case SHM_WIRE_MAP_GIVE:
		shm_map_given(conn, &wire->give, packet->fds[0]);
		break;
	case SHM_WIRE_MAP_REFUSE:
		shm_map_refused(conn, wire->word.word);
		break;
	case SHM_WIRE_KEY_GONE:
		shm_map_gone(conn, wire->word.word);
		break;
	default:
		give_up(conn, ep);
		return;
	}
	/*
	 * After any packet: the peer sends no WAKE into a socket that is full of other packets. A
	 * WAKE itself needs no pass, because shm_service_conn has made one, unless the connection
	 * was armed meanwhile.
	 */
	if (packet->wire.head.type != SHM_WIRE_WAKE ||
	    !atomic_load_explicit(&conn->wake.is_disarmed, memory_order_relaxed))
		serve_published(conn, ep);
}

/* After the set-up, the peer may have given up its user, and this process may share no more. */
static void answer_ask(struct shm_conn *conn, const struct shm_packet *packet)
{
	uint32_t key = packet->wire.word.word;

	if (shm_identity_is_same(conn, packet) && shm_identity_shares(conn->engine))
		shm_map_asked(conn, key);
	else
		shm_conn_send_word(conn, SHM_WIRE_MAP_REFUSE, key);
}

static void dispatch_locked(struct shm_conn *conn, struct core_ep *ep, struct shm_packet *packet)
{
	switch (shm_conn_state(conn)) {
	case SHM_REQUESTED:
	case SHM_ACCEPTED:
		/* CLOSE and other packets may come instead of an answer; what has failed already
		 * stays so (fail_later in connect/setup.c) */
		if (conn->setup->failure || shm_setup_answer(conn, ep, packet) < 0)
			give_up(conn, ep);
		else if (shm_conn_state(conn) == SHM_ESTABLISHED)
			shm_drive(conn, ep);
		break;
	case SHM_ESTABLISHED:
		if (packet->wire.head.type == SHM_WIRE_CLOSE)
			peer_closed(conn, ep, packet->wire.word.word);
		else
			established_packet(conn, ep, packet);
		break;
	default: /* CLOSING: only the end of the socket matters */
		break;
	}
}

/*
 * Takes one packet. False if no further packet is expected now, as after most WAKE packets. If one
 * arrives all the same, epoll reports it.
 */
static bool one_packet(struct shm_conn *conn)
{
	struct shm_packet packet;
	struct core_ep *ep;
	int rc = shm_packet_receive(conn, &packet);

	if (rc == -EAGAIN)
		return false;
	if (shm_conn_state(conn) == SHM_ARRIVING) {
		shm_setup_arrived(conn, rc > 0 ? &packet : NULL);
		shm_packet_close_fds(&packet);
		return false;
	}
	/* needs no lock, and is slow */
	if (rc > 0 && packet.wire.head.type == SHM_WIRE_MAP_ASK)
		answer_ask(conn, &packet);
	if (rc == 0)
		shm_conn_epoll_remove(conn);
	ep = shm_conn_enter(conn);
	if (!ep) {
		shm_conn_epoll_remove(conn);
	} else {
		if (rc > 0)
			dispatch_locked(conn, ep, &packet);
		else if (rc == 0)
			peer_gone(conn, ep);
		else
			give_up(conn, ep);
		core_ep_leave(ep);
	}
	shm_packet_close_fds(&packet);
	return ep && rc > 0 && packet.wire.head.type != SHM_WIRE_WAKE;
}

/* Locks the endpoint of an established connection; NULL: it is not established. */
static struct core_ep *enter_established(struct shm_conn *conn)
{
	struct core_ep *ep = shm_conn_ep(conn).cell ? shm_conn_enter(conn) : NULL;

	if (ep && shm_conn_state(conn) != SHM_ESTABLISHED) {
		core_ep_leave(ep);
		return NULL;
	}
	return ep;
}

/*
 * The socket of a connection is readable. Most often it holds a WAKE for entries in the rings. The
 * rings are served first, because the peer may be waiting, then the packet is read. If no thread
 * polls here, the connection is armed again at once, so that a packet causes the next wake-up.
 * models/wake.pml models this.
 */
void shm_service_conn(struct shm_conn *conn)
{
	struct core_ep *ep = enter_established(conn);
	unsigned i;

	if (ep) {
		serve_published(conn, ep);
		core_ep_leave(ep);
	}
	for (i = 0; i < PACKETS_MAX && one_packet(conn); i++)
		;
	if (is_driven(conn->engine))
		return;
	ep = enter_established(conn);
	if (ep) {
		shm_settle(conn, ep);
		core_ep_leave(ep);
	}
}

/* --- deadlines, and connections that ask for the thread --- */

static void serve_locked(struct shm_conn *conn, struct core_ep *ep, uint64_t now)
{
	enum shm_state state = shm_conn_state(conn);

	if (state < SHM_ESTABLISHED && conn->setup->failure) {
		shm_conn_fail_setup(conn, ep, conn->setup->failure);
		return;
	}
	/* LMR-FREE-21 RMR-FREE-14: it was in the middle of a copy for too long */
	if (shm_conn_trust(conn) != SHM_TRUSTED) {
		give_up(conn, ep);
		return;
	}
	switch (state) {
	case SHM_CALLING:
	case SHM_REQUESTED:
		if (now >= conn->setup->give_up_ns)
			shm_conn_fail_setup(conn, ep, DAT_CONNECTION_EVENT_TIMED_OUT);
		else if (state == SHM_CALLING)
			shm_setup_retry(conn, ep, now);
		break;
	case SHM_ACCEPTED:
		if (now >= conn->setup->give_up_ns)
			give_up(conn, ep);
		else if (conn->setup->is_answering && now >= conn->setup->retry_ns)
			shm_setup_send_accept(conn);
		break;
	case SHM_ESTABLISHED:
		shm_drive(conn, ep);
		break;
	default:
		shm_conn_finish(conn, ep);
	}
}

static void serve(struct shm_conn *conn, uint64_t now)
{
	struct core_ep *ep;

	if (shm_conn_state(conn) == SHM_OFFERED) /* the core has it */
		return;
	if (shm_conn_state(conn) == SHM_ARRIVING) {
		if (now >= conn->setup->give_up_ns)
			shm_setup_drop_silent(conn);
		return;
	}
	ep = shm_conn_enter(conn);
	if (ep) {
		serve_locked(conn, ep, now);
		core_ep_leave(ep);
	} else {
		shm_conn_set_deadline(conn, 0);
	}
}

static void serve_attended(struct soft_attended *attended, void *unused)
{
	struct shm_conn *conn = shm_conn_of_attended(attended);

	(void)unused;
	if (attended->is_listener) {
		shm_listener_resume(shm_listener_of(attended));
		return;
	}
	serve(conn, core_now_ns());
	shm_conn_put(conn);
}

void shm_service_deadlines(struct shm_engine *engine)
{
	soft_attention_serve_due(&engine->attention, core_now_ns(), serve_attended, NULL);
}

void shm_service_pending(struct shm_engine *engine)
{
	soft_attention_serve_asking(&engine->attention, serve_attended, NULL);
}

/* --- the loop --- */

void shm_service_event(struct shm_engine *engine, struct soft_attended *attended)
{
	if (!attended)
		core_service_kicked(&engine->service);
	else if (attended->is_listener)
		shm_listener_event(shm_listener_of(attended));
	else
		shm_service_conn(shm_conn_of_attended(attended));
}

/* No thread polls: arms every connection that has no work. */
static void arm_all(struct shm_engine *engine)
{
	uint32_t count = atomic_load_explicit(&engine->active_count, memory_order_relaxed);

	for (; count; count--) {
		struct shm_conn *conn = shm_engine_rotate(engine);

		if (!conn)
			return;
		if (!shm_engine_arm_one(engine, conn))
			atomic_store_explicit(&engine->has_more, true, memory_order_relaxed);
		shm_conn_put(conn);
	}
}

/* Polls the active connections unless a thread of the consumer does. */
static void service_progress(struct shm_engine *engine)
{
	if (is_driven(engine))
		return;
	atomic_store_explicit(&engine->has_more, false, memory_order_relaxed);
	shm_engine_poll_all(engine);
	arm_all(engine);
}

static bool has_more(struct shm_engine *engine)
{
	return atomic_load_explicit(&engine->has_more, memory_order_relaxed);
}

/* Are there connections that someone must poll? */
static bool has_active(struct shm_engine *engine)
{
	return has_more(engine) || atomic_load(&engine->disarmed) > 0;
}

static int wait_for_events(struct shm_engine *engine, struct epoll_event *events)
{
	uint64_t now = core_now_ns();
	uint64_t left = core_wait_until(atomic_load(&engine->attention.deadline_ns), now);
	uint64_t late = CORE_WAIT_NO_LIMIT;

	if (has_active(engine)) {
		uint64_t driven = driven_left(engine, now);

		if (driven)
			late = driven;
		else if (has_more(engine))
			left = 0;
		else if (left > ARM_NS)
			left = ARM_NS;
	}
	return core_service_wait(&engine->service, events, EVENTS, left, late);
}

static bool is_arriving(const struct shm_conn *conn, uint64_t unused)
{
	(void)unused;
	return shm_conn_state(conn) == SHM_ARRIVING;
}

static void put_attended(struct soft_attended *attended, void *unused)
{
	(void)unused;
	if (attended->is_listener)
		shm_listener_put(shm_listener_of(attended));
	else
		shm_conn_put(shm_conn_of_attended(attended));
}

static void drop_arriving(struct shm_engine *engine)
{
	struct shm_conn *conn = NULL;

	while ((conn = shm_engine_next_conn(engine, conn, is_arriving, 0)) != NULL)
		shm_setup_drop_silent(conn);
	soft_attention_serve_asking(&engine->attention, put_attended, NULL);
}

/* Something was reported, or the time is over. */
static void service_turn(struct shm_engine *engine)
{
	if (atomic_exchange(&engine->is_serving, false))
		core_srq_serve_all(engine->ia);
	shm_service_pending(engine);
	shm_service_deadlines(engine);
	if (has_active(engine))
		service_progress(engine);
}

static void serve_events(struct shm_engine *engine)
{
	struct epoll_event events[EVENTS];
	int count = wait_for_events(engine, events);
	int i;

	for (i = 0; i < count && !atomic_load(&engine->is_stopping); i++)
		shm_service_event(engine, events[i].data.ptr);
	if (!atomic_load(&engine->is_stopping))
		service_turn(engine);
}

struct service {
	struct shm_engine *engine;
	struct soft_guard guard;
};

/* Of the thread, which may have been cancelled (core_service_stop). */
static void service_end(void *argument)
{
	struct service *service = argument;

	core_service_ends(&service->engine->service);
	drop_arriving(service->engine);
	soft_guard_end(&service->guard);
	shm_engine_put(service->engine);
}

/* The thread's main function. */
static void *service_run(void *argument)
{
	struct service service = {.engine = argument};

	(void)core_cancel_off();
	soft_is_library_thread = true;
	soft_guard_begin(&service.guard, service.engine->adapter->keys);
	pthread_cleanup_push(service_end, &service);
	while (!atomic_load(&service.engine->is_stopping))
		serve_events(service.engine);
	pthread_cleanup_pop(true);
	return NULL;
}

/* --- begin and end of the engine --- */

static int start_thread(struct shm_engine *engine)
{
	int rc = soft_thread_open(&engine->service);

	if (rc < 0)
		return rc;
	shm_engine_get(engine); /* the thread's */
	rc = soft_thread_start(&engine->service, engine->ia, "dat-shm", service_run, engine);
	if (rc < 0)
		shm_engine_put(engine);
	return rc;
}

/* A given directory that cannot be used is an error, also where it would not be used. */
static int open_dir(struct shm_engine *engine)
{
	const struct core_settings *settings = &engine->settings;
	int rc;

	if (settings->transport == CORE_TRANSPORT_TCP && !settings->socket_dir[0])
		return 0;
	rc = shm_dir_open(settings->socket_dir, &engine->ia->address, &engine->dir);
	if (rc == 0 && engine->dir.fd < 0 && settings->transport == CORE_TRANSPORT_SHM)
		return -ENODEV;
	return rc;
}

int shm_engine_create(struct soft_adapter *adapter, struct shm_engine **engine_out)
{
	struct shm_engine *engine = core_slab_alloc(sizeof(*engine));
	int rc;

	if (!engine)
		return -ENOMEM;
	engine->ia = adapter->ia;
	engine->adapter = adapter;
	engine->settings = adapter->ia->settings;
	engine->private_max = (uint32_t)adapter->ia->provider_attr.max_private_data_size;
	engine->pulse = soft_keys_pulse(adapter->keys);
	core_service_init(&engine->service);
	engine->dir.fd = -1;
	atomic_init(&engine->refs, 1);
	soft_attention_init(&engine->attention, &engine->service);
	core_lock_init(&engine->lock);
	if (getrandom(engine->token, sizeof(engine->token), 0) != sizeof(engine->token)) {
		rc = -EIO;
		goto err;
	}
	rc = open_dir(engine);
	if (rc < 0)
		goto err;
	rc = start_thread(engine);
	if (rc < 0)
		goto err;
	*engine_out = engine;
	return 0;
err:
	shm_engine_put(engine);
	return rc;
}

void shm_engine_close(struct shm_engine *engine)
{
	atomic_store(&engine->is_stopping, true);
	core_service_stop(&engine->service);
	shm_engine_put(engine);
}
