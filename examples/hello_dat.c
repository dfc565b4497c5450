// SPDX-License-Identifier: BSD-2-Clause
/*
 * hello_dat: all of uDAPL on one page. Read it from top to bottom.
 *
 *   hello_dat [-a ADAPTER]               server: prints its connection qualifier N, serves one client
 *   hello_dat [-a ADAPTER] N [HOST]      client: writes into the server's memory, then sends it a
 *                                        message; the server is on this host if none is given
 *
 * Build:  cc hello_dat.c $(pkg-config --cflags --libs opendat)
 */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dat/udat.h>

#define SECONDS(n) ((n)*1000000u) /* DAT time is in microseconds */

/* Every DAT call returns a code, which dat_strerror() converts to text. */
static void check(const char *call, DAT_RETURN code)
{
	const char *major, *minor;

	if (code == DAT_SUCCESS)
		return;
	dat_strerror(code, &major, &minor);
	fprintf(stderr, "%s: %s %s\n", call, major, minor);
	exit(1);
}
#define CHECK(call) check(#call, call)

/* Results arrive as events. This takes the next event, which must be the expected one. */
static DAT_EVENT expect(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event;
	DAT_COUNT more;

	CHECK(dat_evd_wait(evd, SECONDS(60), 1, &event, &more));
	if (event.event_number != number ||
	    (number == DAT_DTO_COMPLETION_EVENT &&
	     event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS)) {
		fprintf(stderr, "unexpected event 0x%x\n", (unsigned)event.event_number);
		exit(1);
	}
	return event;
}

/* What the client needs to know to write to the server's memory. */
struct window {
	DAT_VADDR address;
	DAT_RMR_CONTEXT context;
};

/* Bytes 0-99 are sent and received; the peer writes to bytes 100-199. */
static char buffer[200];

int main(int argc, char **argv)
{
	DAT_REGION_DESCRIPTION region = {.for_va = buffer};
	DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL, evd;
	DAT_DTO_COOKIE cookie = {.as_64 = 42}; /* returned with the completion */
	DAT_LMR_TRIPLET segment = {.virtual_address = (DAT_VADDR)(size_t)buffer};
	char *adapter = "soft-lo";
	DAT_CONN_QUAL qualifier;
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_LMR_HANDLE lmr;
	DAT_EP_HANDLE ep;
	struct window window;
	DAT_EVENT event;

	/* Open an adapter. soft-lo always exists; `dat_info` lists the others. */
	while (getopt(argc, argv, "a:") == 'a')
		adapter = optarg;
	CHECK(dat_ia_open(adapter, 8, &async_evd, &ia));

	/* Register memory for transfers by the endpoints of the same protection zone. */
	CHECK(dat_pz_create(ia, &pz));
	CHECK(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(buffer), pz,
			     DAT_MEM_PRIV_ALL_FLAG, &lmr, &segment.lmr_context, &window.context,
			     NULL, NULL));
	window.address = segment.virtual_address + 100;

	/* One event dispatcher (EVD) is enough for requests, connections and completions. */
	CHECK(dat_evd_create(ia, 16, DAT_HANDLE_NULL,
			     DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG, &evd));

	/* Create the endpoint, our end of the connection. */
	CHECK(dat_ep_create(ia, pz, evd, evd, evd, NULL, &ep));
	segment.segment_length = 100;

	if (argc == optind) { /* ---- server ---- */
		DAT_PSP_HANDLE psp;
		DAT_CR_HANDLE request;

		/* Post the Receive for the client's message, then listen. */
		CHECK(dat_ep_post_recv(ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG));
		CHECK(dat_psp_create_any(ia, &qualifier, evd, DAT_PSP_CONSUMER_FLAG, &psp));
		printf("qualifier %llu\n", (unsigned long long)qualifier);
		fflush(stdout);

		/* Accept, and send the client the address that it may write to. */
		event = expect(evd, DAT_CONNECTION_REQUEST_EVENT);
		request = event.event_data.cr_arrival_event_data.cr_handle;
		CHECK(dat_cr_accept(request, ep, sizeof(window), &window));
		expect(evd, DAT_CONNECTION_EVENT_ESTABLISHED);

		/* The client sends its message after the RDMA Write, so the memory is written. */
		expect(evd, DAT_DTO_COMPLETION_EVENT);
		printf("client sent \"%s\" and wrote \"%s\"\n", buffer, buffer + 100);
		expect(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
		CHECK(dat_psp_free(psp));
	} else { /* ---- client ---- */
		DAT_RMR_TRIPLET remote = {.segment_length = 100};
		struct addrinfo *found = NULL;
		DAT_IA_ADDRESS_PTR address;
		DAT_IA_ATTR attr;

		/* On this host the server uses the same adapter, so its address is ours. */
		CHECK(dat_ia_query(ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL));
		address = attr.ia_address_ptr;
		if (argc > optind + 1) {
			int code = getaddrinfo(argv[optind + 1], NULL, NULL, &found);

			if (code != 0) {
				fprintf(stderr, "%s: %s\n", argv[optind + 1], gai_strerror(code));
				exit(1);
			}
			address = (DAT_IA_ADDRESS_PTR)found->ai_addr;
		}
		qualifier = strtoull(argv[optind], NULL, 0);
		CHECK(dat_ep_connect(ep, address, qualifier, SECONDS(10), 0, NULL,
				     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
		if (found)
			freeaddrinfo(found); /* the call has copied the address */
		event = expect(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
		memcpy(&window, event.event_data.connect_event_data.private_data, sizeof(window));

		/* RDMA Write: copies our bytes to the server's memory without its program. */
		strcpy(buffer, "hello, memory");
		remote.rmr_context = window.context;
		remote.target_address = window.address;
		CHECK(dat_ep_post_rdma_write(ep, 1, &segment, cookie, &remote,
					     DAT_COMPLETION_DEFAULT_FLAG));
		expect(evd, DAT_DTO_COMPLETION_EVENT);

		/* Send: arrives in the Receive that the server posted, and completes it. */
		strcpy(buffer, "hello, process");
		CHECK(dat_ep_post_send(ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG));
		expect(evd, DAT_DTO_COMPLETION_EVENT);
		CHECK(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
		expect(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
		printf("done\n");
	}

	/* An abrupt close frees all objects of the adapter. */
	CHECK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	return 0;
}
