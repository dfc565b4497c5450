// SPDX-License-Identifier: BSD-2-Clause
/*
 * Step 2 of docs/tutorial.md: RDMA Write.
 *
 *   tutorial_2_write              server: offers memory to one client
 *   tutorial_2_write N TEXT       client: writes the text there, and tells the server
 *   tutorial_2_write N            client: writes one byte too far, to see what happens
 */
#include "tutorial.h"

/* What the server tells the client: where to write, and by which key. */
struct offer {
	DAT_VADDR address;
	DAT_VLEN length;
	DAT_RMR_CONTEXT key;
};

static char board[64];	/* of the server, for the client to write to */
static char buffer[65]; /* of the client, one byte longer */

static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE pz;
static DAT_EVD_HANDLE evd;
static DAT_EP_HANDLE ep;
static const DAT_DTO_COOKIE no_cookie;

static void serve(void)
{
	struct memory memory =
		register_memory(ia, pz, board, sizeof(board),
				DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
	struct offer offer = {(uintptr_t)board, sizeof(board), memory.key};
	DAT_EVENT event;

	/* The client's message has no bytes, so its receive needs no buffer. */
	CHECK(dat_ep_post_recv(ep, 0, NULL, no_cookie, DAT_COMPLETION_DEFAULT_FLAG));
	listen_and_tell(ia, evd);
	event = expect(evd, DAT_CONNECTION_REQUEST_EVENT);
	CHECK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ep, sizeof(offer),
			    &offer));
	expect(evd, DAT_CONNECTION_EVENT_ESTABLISHED);

	/* The bytes arrive without an event. The message after them tells us. */
	event = next_event(evd);
	if (event.event_number == DAT_DTO_COMPLETION_EVENT &&
	    event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS) {
		printf("on the board: %s\n", board);
		expect(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
		return;
	}
	/* The receive was flushed, because the connection is broken. */
	event = next_event(evd);
	printf("event 0x%x\n", (unsigned)event.event_number);
}

static void write_to(const struct offer *offer, const char *text)
{
	struct memory memory =
		register_memory(ia, pz, buffer, sizeof(buffer), DAT_MEM_PRIV_LOCAL_READ_FLAG);
	DAT_RMR_TRIPLET target = {.rmr_context = offer->key,
				  .target_address = offer->address,
				  .segment_length = offer->length};
	DAT_LMR_TRIPLET source = piece(&memory, buffer, sizeof(buffer));
	DAT_EVENT event;

	if (text) {
		snprintf(buffer, offer->length, "%s", text);
		source.segment_length = strlen(buffer) + 1;
	} else {
		target.segment_length = sizeof(buffer); /* more than was offered */
	}
	CHECK(dat_ep_post_rdma_write(ep, 1, &source, no_cookie, &target,
				     DAT_COMPLETION_DEFAULT_FLAG));
	if (!text) {
		event = next_event(evd);
		printf("completion status %d\n",
		       (int)event.event_data.dto_completion_event_data.status);
		expect(evd, DAT_CONNECTION_EVENT_BROKEN);
		return;
	}
	/* A message never overtakes an RDMA Write, so both can be posted at once. */
	CHECK(dat_ep_post_send(ep, 0, NULL, no_cookie, DAT_COMPLETION_DEFAULT_FLAG));
	expect(evd, DAT_DTO_COMPLETION_EVENT);
	expect(evd, DAT_DTO_COMPLETION_EVENT);
	CHECK(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
}

int main(int argc, char **argv)
{
	DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
	struct offer offer;
	DAT_EVENT event;

	take_options(&argc, &argv);
	CHECK(dat_ia_open(adapter, 8, &async_evd, &ia));
	CHECK(dat_pz_create(ia, &pz));
	CHECK(dat_evd_create(ia, 16, DAT_HANDLE_NULL,
			     DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG, &evd));
	CHECK(dat_ep_create(ia, pz, evd, evd, evd, NULL, &ep));
	if (argc < 2) {
		serve();
	} else {
		request_connection(ia, ep, argv[1]);
		event = expect(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
		memcpy(&offer, event.event_data.connect_event_data.private_data, sizeof(offer));
		write_to(&offer, argc > 2 ? argv[2] : NULL);
	}
	CHECK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	return 0;
}
