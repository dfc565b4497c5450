// SPDX-License-Identifier: BSD-2-Clause
/*
 * Step 1 of docs/tutorial.md: one message.
 *
 *   tutorial_1_hello              server: prints its connection qualifier N, receives one message
 *   tutorial_1_hello N TEXT       client: sends the text
 */
#include "tutorial.h"

static char buffer[100];

int main(int argc, char **argv)
{
	DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL, evd;
	DAT_DTO_COOKIE cookie = {.as_64 = 0};
	struct memory memory;
	DAT_LMR_TRIPLET segment;
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;
	DAT_EVENT event;

	take_options(&argc, &argv);
	CHECK(dat_ia_open(adapter, 8, &async_evd, &ia));
	CHECK(dat_pz_create(ia, &pz));
	memory = register_memory(ia, pz, buffer, sizeof(buffer),
				 DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	CHECK(dat_evd_create(ia, 16, DAT_HANDLE_NULL,
			     DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG, &evd));
	CHECK(dat_ep_create(ia, pz, evd, evd, evd, NULL, &ep));

	if (argc < 3) { /* ---- server ---- */
		segment = piece(&memory, buffer, sizeof(buffer));
		CHECK(dat_ep_post_recv(ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG));
		listen_and_tell(ia, evd);

		event = expect(evd, DAT_CONNECTION_REQUEST_EVENT);
		CHECK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ep, 0, NULL));
		expect(evd, DAT_CONNECTION_EVENT_ESTABLISHED);

		event = expect(evd, DAT_DTO_COMPLETION_EVENT);
		printf("%d bytes: %s\n",
		       (int)event.event_data.dto_completion_event_data.transfered_length, buffer);
		expect(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	} else { /* ---- client ---- */
		request_connection(ia, ep, argv[1]);
		expect(evd, DAT_CONNECTION_EVENT_ESTABLISHED);

		snprintf(buffer, sizeof(buffer), "%s", argv[2]);
		segment = piece(&memory, buffer, strlen(buffer) + 1);
		CHECK(dat_ep_post_send(ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG));
		expect(evd, DAT_DTO_COMPLETION_EVENT);

		CHECK(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
		expect(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
	}
	CHECK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	return 0;
}
