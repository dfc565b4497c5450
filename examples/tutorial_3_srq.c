// SPDX-License-Identifier: BSD-2-Clause
/*
 * Step 3 of docs/tutorial.md: a server for many clients, with a shared receive queue and RDMA Read.
 *
 *   tutorial_3_srq                server: serves three clients
 *   tutorial_3_srq N TEXT         client: offers the text, which the server reads
 */
#include "tutorial.h"

#define CLIENTS 3
#define BUFFERS 2 /* fewer than clients: the queue is shared */
#define TEXT_MAX 64

/* A client's message: where its text is, and by which key the server can read it. */
struct offer {
	DAT_VADDR address;
	DAT_VLEN length;
	DAT_RMR_CONTEXT key;
};

/* The server's state of one client. The cookie of its RDMA Read points to it. */
struct client {
	DAT_EP_HANDLE ep;
	char text[TEXT_MAX + 1]; /* with a NUL that no read overwrites */
};

static struct offer offers[BUFFERS];
static struct client clients[CLIENTS];

static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE pz;
static DAT_EVD_HANDLE evd;
static DAT_SRQ_HANDLE srq;
static struct memory offers_memory, clients_memory;

/* ---- server ---- */

/* Gives a buffer to the shared receive queue. Its completion has the same cookie. */
static void post_buffer(struct offer *offer)
{
	DAT_LMR_TRIPLET segment = piece(&offers_memory, offer, sizeof(*offer));
	DAT_DTO_COOKIE cookie = {.as_ptr = offer};

	CHECK(dat_srq_post_recv(srq, 1, &segment, cookie));
}

static void start_server(void)
{
	DAT_SRQ_ATTR attr = {.max_recv_dtos = BUFFERS, .max_recv_iov = 1};

	offers_memory =
		register_memory(ia, pz, offers, sizeof(offers), DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	clients_memory =
		register_memory(ia, pz, clients, sizeof(clients), DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	CHECK(dat_srq_create(ia, pz, &attr, &srq));
	for (int i = 0; i < BUFFERS; i++)
		post_buffer(&offers[i]);
}

/* A client requests a connection: make an endpoint that receives from the shared queue. */
static void accept_client(DAT_CR_HANDLE request, struct client *client)
{
	DAT_EP_ATTR attr = {.max_request_dtos = 4, .max_request_iov = 1, .max_rdma_read_out = 1};
	DAT_CONTEXT context = {.as_ptr = client};

	CHECK(dat_ep_create_with_srq(ia, pz, evd, evd, evd, srq, &attr, &client->ep));
	CHECK(dat_set_consumer_context(client->ep, context));
	CHECK(dat_cr_accept(request, client->ep, 0, NULL));
}

/* A message has arrived: read what it offers. */
static void read_text(struct client *client, struct offer *message)
{
	struct offer offer = *message;
	DAT_RMR_TRIPLET source = {.rmr_context = offer.key,
				  .target_address = offer.address,
				  .segment_length = offer.length};
	DAT_LMR_TRIPLET target = piece(&clients_memory, client->text, TEXT_MAX);
	DAT_DTO_COOKIE cookie = {.as_ptr = client};

	post_buffer(message);	       /* for the next message of any client */
	if (offer.length > TEXT_MAX) { /* what a peer says is checked before it is used */
		CHECK(dat_ep_disconnect(client->ep, DAT_CLOSE_ABRUPT_FLAG));
		return;
	}
	CHECK(dat_ep_post_rdma_read(client->ep, 1, &target, cookie, &source,
				    DAT_COMPLETION_DEFAULT_FLAG));
}

/* Is this the cookie of a buffer, that is, of a message? */
static int is_message(const void *cookie)
{
	return cookie >= (const void *)offers && cookie < (const void *)(offers + BUFFERS);
}

static void handle_completion(const DAT_DTO_COMPLETION_EVENT_DATA *done)
{
	void *cookie = done->user_cookie.as_ptr;
	DAT_CONTEXT context;

	if (done->status != DAT_DTO_SUCCESS) {
		/* The connection ends, which is an event of its own. The buffer is ours again. */
		if (is_message(cookie))
			post_buffer(cookie);
		return;
	}
	if (is_message(cookie)) {
		CHECK(dat_get_consumer_context(done->ep_handle, &context));
		read_text(context.as_ptr, cookie);
		return;
	}
	printf("read \"%s\"\n", ((struct client *)cookie)->text);
	CHECK(dat_ep_disconnect(done->ep_handle, DAT_CLOSE_GRACEFUL_FLAG));
}

static void serve(void)
{
	int accepted = 0, ended = 0;

	start_server();
	listen_and_tell(ia, evd);
	while (ended < CLIENTS) {
		DAT_EVENT event = next_event(evd);
		DAT_EVENT_DATA *data = &event.event_data;

		switch (event.event_number) {
		case DAT_CONNECTION_REQUEST_EVENT:
			if (accepted < CLIENTS)
				accept_client(data->cr_arrival_event_data.cr_handle,
					      &clients[accepted++]);
			else
				CHECK(dat_cr_reject(data->cr_arrival_event_data.cr_handle));
			break;
		case DAT_DTO_COMPLETION_EVENT:
			handle_completion(&data->dto_completion_event_data);
			break;
		case DAT_CONNECTION_EVENT_ESTABLISHED:
			break;
		default: /* disconnected, broken, or never completed */
			CHECK(dat_ep_free(data->connect_event_data.ep_handle));
			ended++;
		}
	}
}

/* ---- client ---- */

static void offer_text(const char *qualifier, const char *text)
{
	static struct {
		char text[TEXT_MAX];
		struct offer offer;
	} own;
	struct memory memory =
		register_memory(ia, pz, &own, sizeof(own),
				DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG);
	DAT_LMR_TRIPLET segment = piece(&memory, &own.offer, sizeof(own.offer));
	DAT_DTO_COOKIE cookie = {.as_64 = 0};
	DAT_EP_HANDLE ep;

	CHECK(dat_ep_create(ia, pz, evd, evd, evd, NULL, &ep));
	request_connection(ia, ep, qualifier);
	expect(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	snprintf(own.text, sizeof(own.text), "%s", text);
	own.offer.address = (uintptr_t)own.text;
	own.offer.length = strlen(own.text) + 1;
	own.offer.key = memory.key;
	CHECK(dat_ep_post_send(ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	expect(evd, DAT_DTO_COMPLETION_EVENT);
	/* The server reads the text without us, and disconnects when it has it. */
	expect(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
}

int main(int argc, char **argv)
{
	DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;

	take_options(&argc, &argv);
	CHECK(dat_ia_open(adapter, 8, &async_evd, &ia));
	CHECK(dat_pz_create(ia, &pz));
	CHECK(dat_evd_create(ia, 8 * CLIENTS, DAT_HANDLE_NULL,
			     DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG, &evd));
	if (argc < 3)
		serve();
	else
		offer_text(argv[1], argv[2]);
	CHECK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	return 0;
}
