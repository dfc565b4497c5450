// SPDX-License-Identifier: BSD-2-Clause
/* What the victim and the survivor do: the same, on either side of a connection. */
#include "stops.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define WAIT_US 5000u	/* one dat_evd_wait */
#define CONNECT_MS 400u /* of dat_ep_connect: a stopped peer does not answer */

struct stops_shared *stops;

uint64_t stops_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void stops_wrong(const struct stops_peer *peer, const char *what, long value)
{
	if (peer->is_victim)
		_exit(0);
	if (!stops->message[0])
		snprintf(stops->message, sizeof(stops->message), "line %d: %s: 0x%lx",
			 (int)stops->line, what, value);
}

/* A call that must succeed, whatever the peer does. */
static void must(const struct stops_peer *peer, DAT_RETURN ret, const char *call)
{
	if (ret != DAT_SUCCESS)
		stops_wrong(peer, call, ret);
}

static void begin(const struct stops_peer *peer, int line)
{
	if (peer->is_victim)
		trace_mark();
	else
		stops->line = line;
}

#define MUST(call) (begin(peer, __LINE__), must(peer, call, #call))

/* --- events --- */

static void take_dto(struct stops_peer *peer, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *data = &event->event_data.dto_completion_event_data;
	const uint64_t cookie = data->user_cookie.as_64;

	if (cookie >= STOPS_COOKIES || !peer->is_posted[cookie] || peer->is_done[cookie]) {
		stops_wrong(peer, "completion that was not posted, or comes again", (long)cookie);
		return;
	}
	peer->is_done[cookie] = true;
	peer->is_successful[cookie] = data->status == DAT_DTO_SUCCESS;
	if (peer->is_successful[cookie])
		stops_check_completion(peer, (enum stops_cookie)cookie, data->transfered_length);
}

static DAT_PVOID address_of(struct stops_peer *peer, struct stops_address *mine)
{
	*mine = (struct stops_address){(uintptr_t)peer->memory, peer->rkey};
	return mine;
}

static void accept_request(struct stops_peer *peer, DAT_CR_HANDLE cr)
{
	struct stops_address mine;
	DAT_CR_PARAM param;

	peer->has_request = true;
	MUST(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	memcpy(&peer->remote, param.private_data, sizeof(peer->remote));
	MUST(dat_cr_accept(cr, peer->ep, sizeof(mine), address_of(peer, &mine)));
}

static void take_conn(struct stops_peer *peer, const DAT_EVENT *event)
{
	const DAT_CONNECTION_EVENT_DATA *data = &event->event_data.connect_event_data;

	if (event->event_number == DAT_CONNECTION_REQUEST_EVENT) {
		accept_request(peer, event->event_data.cr_arrival_event_data.cr_handle);
	} else if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
		peer->is_established = true;
		if (peer->is_active)
			memcpy(&peer->remote, data->private_data, sizeof(peer->remote));
	} else {
		if (peer->has_ended)
			stops_wrong(peer, "second end", event->event_number);
		peer->has_ended = true;
		peer->end = event->event_number;
	}
}

/* Takes what has arrived. True if there was anything. */
static bool take_events(struct stops_peer *peer)
{
	bool is_any = false;
	DAT_EVENT event;

	begin(peer, __LINE__);
	while (dat_evd_dequeue(peer->dto, &event) == DAT_SUCCESS) {
		take_dto(peer, &event);
		is_any = true;
	}
	while (dat_evd_dequeue(peer->conn, &event) == DAT_SUCCESS) {
		take_conn(peer, &event);
		is_any = true;
	}
	return is_any;
}

/* May the other process still cause an event here? One that has died does so for each of its
 * connections and attempts. */
static bool is_more_expected(const struct stops_peer *peer)
{
	switch (atomic_load(&stops->state)) {
	case STOPS_STOPPED:
		return false;
	case STOPS_KILLED:
		return peer->is_active || peer->has_request;
	default:
		return true;
	}
}

/*
 * Takes events until that is true. False: the connection has ended before, or the victim does no
 * more. `is_needed`: it must become true in any case.
 */
static bool until(struct stops_peer *peer, bool (*is_true)(const struct stops_peer *),
		  bool is_needed)
{
	const uint64_t limit = stops_now_ms() + STOPS_HANG_MS;
	uint64_t last = stops_now_ms();
	DAT_EVENT event;
	DAT_COUNT more;

	for (;;) {
		if (take_events(peer))
			last = stops_now_ms();
		if (is_true(peer))
			return true;
		if (!is_needed && peer->has_ended)
			return false;
		if (!is_needed && !is_more_expected(peer) && stops_now_ms() - last > STOPS_QUIET_MS)
			return false;
		if (stops_now_ms() > limit) {
			stops_wrong(peer, "waits in vain", 0);
			return false;
		}
		begin(peer, __LINE__);
		if (dat_evd_wait(peer->dto, WAIT_US, 1, &event, &more) == DAT_SUCCESS) {
			take_dto(peer, &event);
			last = stops_now_ms();
		}
	}
}

/* --- objects --- */

static void open_all(struct stops_peer *peer)
{
	char name[] = "soft-lo";
	DAT_REGION_DESCRIPTION region;
	int fd = memfd_create("stops", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, STOPS_MEMORY) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		abort();
	peer->memory = mmap(NULL, STOPS_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (peer->memory == MAP_FAILED)
		abort();
	stops_fill(peer);
	region.for_va = peer->memory;
	MUST(dat_ia_open(name, 8, &peer->async, &peer->ia));
	MUST(dat_pz_create(peer->ia, &peer->pz));
	MUST(dat_evd_create(peer->ia, 32, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &peer->dto));
	MUST(dat_evd_create(peer->ia, 32, DAT_HANDLE_NULL,
			    DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG, &peer->conn));
	MUST(dat_lmr_create(peer->ia, DAT_MEM_TYPE_VIRTUAL, region, STOPS_MEMORY, peer->pz,
			    DAT_MEM_PRIV_ALL_FLAG, &peer->lmr, &peer->lkey, &peer->rkey, NULL,
			    NULL));
	MUST(dat_ep_create(peer->ia, peer->pz, peer->dto, peer->dto, peer->conn, NULL, &peer->ep));
}

static void close_all(struct stops_peer *peer)
{
	if (peer->psp)
		MUST(dat_psp_free(peer->psp));
	MUST(dat_ep_free(peer->ep));
	MUST(dat_lmr_free(peer->lmr));
	if (!peer->is_victim)
		stops_check_freed(peer);
	MUST(dat_evd_free(peer->dto));
	MUST(dat_evd_free(peer->conn));
	MUST(dat_pz_free(peer->pz));
	MUST(dat_ia_close(peer->ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* --- connection --- */

static bool is_established(const struct stops_peer *peer)
{
	return peer->is_established;
}

/* True if the other side has published its service point. */
static bool has_qual(void)
{
	const uint64_t limit = stops_now_ms() + STOPS_HANG_MS;
	const struct timespec pause = {.tv_nsec = 200000};

	while (!stops->qual && stops->state == STOPS_RUNS && stops_now_ms() < limit)
		nanosleep(&pause, NULL);
	return stops->qual;
}

static bool connect_both(struct stops_peer *peer)
{
	struct stops_address mine;
	DAT_CONN_QUAL qual;
	DAT_IA_ATTR attr;

	if (!peer->is_active) {
		MUST(dat_psp_create_any(peer->ia, &qual, peer->conn, DAT_PSP_CONSUMER_FLAG,
					&peer->psp));
		stops->qual = qual;
		return until(peer, is_established, false);
	}
	if (!has_qual())
		return false;
	MUST(dat_ia_query(peer->ia, NULL, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_NONE, NULL));
	MUST(dat_ep_connect(peer->ep, attr.ia_address_ptr, stops->qual, CONNECT_MS * 1000,
			    sizeof(mine), address_of(peer, &mine), DAT_QOS_BEST_EFFORT,
			    DAT_CONNECT_DEFAULT_FLAG));
	return until(peer, is_established, false);
}

static bool is_idle(const struct stops_peer *peer)
{
	DAT_EP_STATE state = DAT_EP_STATE_UNCONNECTED;

	must(peer, dat_ep_get_status(peer->ep, &state, NULL, NULL), "dat_ep_get_status");
	return state == DAT_EP_STATE_UNCONNECTED || state == DAT_EP_STATE_DISCONNECTED;
}

static bool is_all_done(const struct stops_peer *peer)
{
	return memcmp(peer->is_posted, peer->is_done, sizeof(peer->is_done)) == 0;
}

/* --- transfers --- */

static DAT_LMR_TRIPLET local(const struct stops_peer *peer, enum stops_place place, uint32_t len)
{
	return (DAT_LMR_TRIPLET){.lmr_context = peer->lkey,
				 .virtual_address = (uintptr_t)peer->memory + place,
				 .segment_length = len};
}

static DAT_DTO_COOKIE cookie_of(enum stops_cookie cookie)
{
	return (DAT_DTO_COOKIE){.as_64 = cookie};
}

static void post_receive(struct stops_peer *peer, enum stops_cookie cookie, enum stops_place place,
			 uint32_t len)
{
	DAT_LMR_TRIPLET to = local(peer, place, len);

	MUST(dat_ep_post_recv(peer->ep, 1, &to, cookie_of(cookie), DAT_COMPLETION_DEFAULT_FLAG));
	peer->is_posted[cookie] = true;
}

/* Which request `until` waits for. */
static enum stops_cookie awaited;

static bool is_awaited_done(const struct stops_peer *peer)
{
	return peer->is_done[awaited];
}

/* False: it failed, or the connection has ended. */
static bool request(struct stops_peer *peer, enum stops_cookie cookie, uint32_t len)
{
	const bool is_read = cookie == STOPS_READ_LARGE;
	const enum stops_place target = is_read			      ? STOPS_SOURCE
					: cookie == STOPS_WRITE_SMALL ? STOPS_TARGET_SMALL
								      : STOPS_TARGET_LARGE;
	DAT_LMR_TRIPLET mine = local(peer, is_read ? STOPS_READ : STOPS_SOURCE, len);
	DAT_RMR_TRIPLET theirs = {.rmr_context = peer->remote.rkey,
				  .target_address = peer->remote.address + target,
				  .segment_length = len};
	DAT_RETURN ret;

	begin(peer, __LINE__);
	if (cookie <= STOPS_SEND_LARGE)
		ret = dat_ep_post_send(peer->ep, 1, &mine, cookie_of(cookie),
				       DAT_COMPLETION_DEFAULT_FLAG);
	else if (is_read)
		ret = dat_ep_post_rdma_read(peer->ep, 1, &mine, cookie_of(cookie), &theirs,
					    DAT_COMPLETION_DEFAULT_FLAG);
	else
		ret = dat_ep_post_rdma_write(peer->ep, 1, &mine, cookie_of(cookie), &theirs,
					     DAT_COMPLETION_DEFAULT_FLAG);
	if (ret != DAT_SUCCESS) {
		/* the connection ended meanwhile: a later wait gets that event */
		if (DAT_GET_TYPE(ret) != DAT_INVALID_STATE)
			stops_wrong(peer, "post", ret);
		return false;
	}
	peer->is_posted[cookie] = true;
	awaited = cookie;
	return until(peer, is_awaited_done, false) && peer->is_successful[cookie];
}

static void transfer(struct stops_peer *peer)
{
	if (request(peer, STOPS_SEND_SMALL, STOPS_SMALL) &&
	    request(peer, STOPS_WRITE_SMALL, STOPS_SMALL) &&
	    request(peer, STOPS_WRITE_LARGE, STOPS_LARGE) &&
	    request(peer, STOPS_READ_LARGE, STOPS_LARGE) &&
	    request(peer, STOPS_SEND_LARGE, STOPS_LARGE))
		until(peer, is_all_done, false);
}

/* --- all of it --- */

static void disconnect(struct stops_peer *peer)
{
	const DAT_CLOSE_FLAGS how =
		is_all_done(peer) ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG;

	begin(peer, __LINE__);
	if (!is_idle(peer)) /* it may end by itself meanwhile */
		(void)dat_ep_disconnect(peer->ep, how);
	if (!until(peer, is_idle, false))
		(void)dat_ep_disconnect(peer->ep, DAT_CLOSE_ABRUPT_FLAG);
	until(peer, is_idle, true);
	/* Receives of an endpoint that was never connected stay posted; no others */
	if (peer->has_ended && peer->is_established)
		until(peer, is_all_done, true);
	take_events(peer);
}

void stops_run(const struct stops_scenario *scenario, bool is_victim)
{
	struct stops_peer this = {.is_victim = is_victim,
				  .is_active = is_victim == scenario->is_victim_active};
	struct stops_peer *peer = &this;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("DAT_COPY", scenario->copy, 1);
	setenv("DAT_TRANSPORT", scenario->transport, 1);
	setenv("DAT_PEER_TIMEOUT_MS", STOPS_PEER_TIMEOUT_MS, 1);
	while (is_victim && !stops->is_watched)
		usleep(100);
	open_all(peer);
	post_receive(peer, STOPS_GOT_SMALL, STOPS_RECV_SMALL, STOPS_SMALL);
	post_receive(peer, STOPS_GOT_LARGE, STOPS_RECV_LARGE, STOPS_LARGE);
	if (connect_both(peer))
		transfer(peer);
	disconnect(peer);
	if (!is_victim) {
		if (this.is_established)
			stops_check_end(peer);
		stops_check_memory(peer);
	}
	close_all(peer);
	_exit(0);
}
