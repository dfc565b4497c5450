// SPDX-License-Identifier: BSD-2-Clause
/*
 * Step 5 of docs/tutorial.md: two hosts, what may go wrong between them, and connecting again.
 *
 *   tutorial_5_hosts -a soft-eth0 listen [N]             server: echoes numbers, until it gets 0
 *   tutorial_5_hosts -a soft-eth0 -s HOST connect N LAST client: sends 1 to LAST, then 0
 */
#include <time.h>

#include "tutorial.h"

#define ANSWER_TIME SECONDS(5)
#define ATTEMPTS 100

/* A connection at either side, with the number that arrives and the one that leaves. */
struct link {
	DAT_EP_HANDLE ep;
	struct memory memory;
	uint64_t in, out;
};

static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE pz;
static DAT_EVD_HANDLE evd;

static struct link *make_link(void)
{
	struct link *link = calloc(1, sizeof(*link));

	if (!link)
		abort();
	link->memory =
		register_memory(ia, pz, link, sizeof(*link),
				DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	CHECK(dat_ep_create(ia, pz, evd, evd, evd, NULL, &link->ep));
	return link;
}

static void free_link(struct link *link)
{
	CHECK(dat_ep_free(link->ep));
	CHECK(dat_lmr_free(link->memory.lmr));
	free(link);
}

/* The cookie of a Receive is the link, that of a Send is 0. */
static void post_receive(struct link *link)
{
	DAT_LMR_TRIPLET segment = piece(&link->memory, &link->in, sizeof(link->in));
	DAT_DTO_COOKIE cookie = {.as_ptr = link};

	CHECK(dat_ep_post_recv(link->ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

static void post_number(struct link *link, uint64_t number)
{
	DAT_LMR_TRIPLET segment = piece(&link->memory, &link->out, sizeof(link->out));
	DAT_DTO_COOKIE cookie = {.as_64 = 0};

	link->out = number;
	CHECK(dat_ep_post_send(link->ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

/* The link whose number has arrived, or NULL. After the end of a connection Receives are flushed. */
static struct link *arrived(const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *done = &event->event_data.dto_completion_event_data;

	if (event->event_number != DAT_DTO_COMPLETION_EVENT || done->status != DAT_DTO_SUCCESS)
		return NULL;
	return done->user_cookie.as_ptr;
}

/* What an event that ends or refuses a connection means. */
static const char *end_text(DAT_EVENT_NUMBER number)
{
	switch (number) {
	case DAT_CONNECTION_EVENT_DISCONNECTED:
		return "the peer has disconnected, or its host says that it is gone";
	case DAT_CONNECTION_EVENT_BROKEN:
		return "the connection broke: the peer, its host or the network failed";
	case DAT_CONNECTION_EVENT_PEER_REJECTED:
		return "the server does not want this client";
	case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
		return "nobody listens there";
	case DAT_CONNECTION_EVENT_UNREACHABLE:
		return "the network does not lead to that host";
	case DAT_CONNECTION_EVENT_TIMED_OUT:
		return "no answer within the time-out of the connect";
	case DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR:
		return "the client was gone before the connection was made";
	default:
		return "an event of another kind";
	}
}

/* ---- server: one link for each request ---- */

static void accept_request(DAT_CR_HANDLE request)
{
	struct link *link = make_link();
	DAT_CONTEXT context = {.as_ptr = link};

	CHECK(dat_set_consumer_context(link->ep, context));
	post_receive(link);
	CHECK(dat_cr_accept(request, link->ep, 0, NULL));
}

static void serve(const char *chosen)
{
	DAT_CONN_QUAL qualifier = chosen ? strtoull(chosen, NULL, 0) : 0;
	DAT_PSP_HANDLE psp;
	int is_last = 0, links = 0;

	if (chosen) {
		CHECK(dat_psp_create(ia, qualifier, evd, DAT_PSP_CONSUMER_FLAG, &psp));
		tell_qualifier(qualifier);
	} else {
		psp = listen_and_tell(ia, evd);
	}
	while (!is_last || links > 0) {
		DAT_EVENT event;
		struct link *link;
		DAT_COUNT more;

		CHECK(dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more));
		if (event.event_number == DAT_CONNECTION_REQUEST_EVENT) {
			accept_request(event.event_data.cr_arrival_event_data.cr_handle);
			links++;
		} else if ((link = arrived(&event)) != NULL) {
			is_last |= link->in == 0;
			post_receive(link);
			post_number(link, link->in);
		} else if (event.event_number != DAT_DTO_COMPLETION_EVENT &&
			   event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED) {
			DAT_CONTEXT context;

			CHECK(dat_get_consumer_context(
				event.event_data.connect_event_data.ep_handle, &context));
			free_link(context.as_ptr);
			links--;
		}
	}
	CHECK(dat_psp_free(psp));
}

/* ---- client ---- */

/* Connects, as often as it takes. */
static void connect_link(struct link *link, const char *qualifier)
{
	const struct timespec pause = {.tv_nsec = 100000000};

	for (int attempt = 1;; attempt++) {
		DAT_EVENT_NUMBER number;

		request_connection(ia, link->ep, qualifier);
		do { /* what was posted after the end of the last connection is flushed before */
			number = next_event(evd).event_number;
		} while (number == DAT_DTO_COMPLETION_EVENT);
		if (number == DAT_CONNECTION_EVENT_ESTABLISHED) {
			printf("connected\n");
			return;
		}
		printf("not connected: %s\n", end_text(number));
		if (number == DAT_CONNECTION_EVENT_PEER_REJECTED || attempt == ATTEMPTS)
			exit(1);
		CHECK(dat_ep_reset(link->ep)); /* DISCONNECTED to UNCONNECTED */
		nanosleep(&pause, NULL);
	}
}

/* Sends a number and waits for its echo. Returns 0 if the connection has ended before. */
static int ask(struct link *link, uint64_t number)
{
	post_receive(link);
	post_number(link, number);
	for (;;) {
		DAT_EVENT event;
		DAT_COUNT more;
		DAT_RETURN code = dat_evd_wait(evd, ANSWER_TIME, 1, &event, &more);

		if (DAT_GET_TYPE(code) == DAT_TIMEOUT_EXPIRED) {
			printf("no answer in time\n");
			CHECK(dat_ep_disconnect(link->ep, DAT_CLOSE_ABRUPT_FLAG));
			continue; /* the event of the end comes */
		}
		CHECK(code);
		if (arrived(&event))
			return 1;
		if (event.event_number != DAT_DTO_COMPLETION_EVENT) {
			printf("connection lost: %s\n", end_text(event.event_number));
			return 0;
		}
	}
}

static void ask_all(const char *qualifier, uint64_t last)
{
	struct link *link = make_link();

	connect_link(link, qualifier);
	for (uint64_t i = 1; i <= last + 1; i++) {
		while (!ask(link, i <= last ? i : 0)) {
			CHECK(dat_ep_reset(link->ep));
			connect_link(link, qualifier);
		}
	}
	printf("%llu echoes\n", (unsigned long long)last);
	CHECK(dat_ep_disconnect(link->ep, DAT_CLOSE_GRACEFUL_FLAG));
	while (next_event(evd).event_number != DAT_CONNECTION_EVENT_DISCONNECTED)
		; /* the completion of the last Send comes before */
	free_link(link);
}

int main(int argc, char **argv)
{
	DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;

	setlinebuf(stdout);
	take_options(&argc, &argv);
	CHECK(dat_ia_open(adapter, 8, &async_evd, &ia));
	CHECK(dat_pz_create(ia, &pz));
	CHECK(dat_evd_create(ia, 256, DAT_HANDLE_NULL,
			     DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG, &evd));
	if (argc == 4 && strcmp(argv[1], "connect") == 0)
		ask_all(argv[2], strtoull(argv[3], NULL, 0));
	else
		serve(argc > 2 ? argv[2] : NULL);
	CHECK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	return 0;
}
