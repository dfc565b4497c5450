// SPDX-License-Identifier: BSD-2-Clause
/*
 * Step 4 of docs/tutorial.md: an event loop with epoll.
 *
 *   tutorial_4_epoll              server: prints the message of each client until standard input
 * ends tutorial_1_hello N TEXT       its clients
 */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <dat/opendat.h>

#include "tutorial.h"

/* One client. The context of its endpoint points to it. */
struct client {
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	char text[100];
};

static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE pz;
static DAT_CNO_HANDLE cno;
static DAT_EVD_HANDLE request_evd, transfer_evd;

static struct client *client_of(DAT_EP_HANDLE ep)
{
	DAT_CONTEXT context;

	CHECK(dat_get_consumer_context(ep, &context));
	return context.as_ptr;
}

static void accept_client(DAT_CR_HANDLE request)
{
	struct client *client = calloc(1, sizeof(*client));
	DAT_CONTEXT context = {.as_ptr = client};
	DAT_DTO_COOKIE cookie = {.as_ptr = client};
	DAT_LMR_TRIPLET segment;
	struct memory memory;

	if (!client) {
		CHECK(dat_cr_reject(request));
		return;
	}
	memory = register_memory(ia, pz, client->text, sizeof(client->text) - 1,
				 DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	segment = piece(&memory, client->text, sizeof(client->text) - 1);
	client->lmr = memory.lmr;
	CHECK(dat_ep_create(ia, pz, transfer_evd, transfer_evd, request_evd, NULL, &client->ep));
	CHECK(dat_set_consumer_context(client->ep, context));
	CHECK(dat_ep_post_recv(client->ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	CHECK(dat_cr_accept(request, client->ep, 0, NULL));
}

static void forget_client(DAT_EP_HANDLE ep)
{
	struct client *client = client_of(ep);

	CHECK(dat_ep_free(ep));
	CHECK(dat_lmr_free(client->lmr));
	free(client);
}

static void handle_transfers(void)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(transfer_evd, &event) == DAT_SUCCESS) {
		const DAT_DTO_COMPLETION_EVENT_DATA *done =
			&event.event_data.dto_completion_event_data;

		if (done->status == DAT_DTO_SUCCESS)
			printf("%s\n", ((struct client *)done->user_cookie.as_ptr)->text);
	}
	fflush(stdout);
}

static void handle_requests(void)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(request_evd, &event) == DAT_SUCCESS) {
		switch (event.event_number) {
		case DAT_CONNECTION_REQUEST_EVENT:
			accept_client(event.event_data.cr_arrival_event_data.cr_handle);
			break;
		case DAT_CONNECTION_EVENT_ESTABLISHED:
			break;
		default: /* The connection has ended. All its completions are queued already. */
			handle_transfers();
			forget_client(event.event_data.connect_event_data.ep_handle);
		}
	}
}

/* Handles everything that has happened. Returns when nothing is left, without waiting. */
static void drain(void)
{
	DAT_EVD_HANDLE evd;

	/* Take the notifications first, then the events: one that comes later notifies again. */
	while (dat_cno_wait(cno, 0, &evd) == DAT_SUCCESS)
		;
	handle_transfers();
	handle_requests();
}

static void open_adapter(int *fd)
{
	DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;

	CHECK(dat_ia_open(adapter, 8, &async_evd, &ia));
	CHECK(dat_pz_create(ia, &pz));
	CHECK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	CHECK(dat_evd_create(ia, 64, cno, DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG, &request_evd));
	CHECK(dat_evd_create(ia, 64, cno, DAT_EVD_DTO_FLAG, &transfer_evd));
	CHECK(dat_opendat_cno_fd(cno, fd));
}

static void watch(int poller, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event)) {
		perror("epoll_ctl");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	int poller = epoll_create1(EPOLL_CLOEXEC), dat_fd;
	struct epoll_event ready;
	char input[100];

	take_options(&argc, &argv);
	open_adapter(&dat_fd);
	listen_and_tell(ia, request_evd);
	watch(poller, dat_fd);
	watch(poller, STDIN_FILENO);
	for (;;) {
		drain();
		if (epoll_wait(poller, &ready, 1, -1) < 0) {
			if (errno == EINTR)
				continue;
			perror("epoll_wait");
			return 1;
		}
		if (ready.data.fd == STDIN_FILENO && read(STDIN_FILENO, input, sizeof(input)) <= 0)
			break;
	}
	CHECK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	close(poller);
	return 0;
}
