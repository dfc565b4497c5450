// SPDX-License-Identifier: BSD-2-Clause
#include "foreign.h"

#include <arpa/inet.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#define RECEIVES 4u /* the messages alternate, so that more than two are never under way */
#define SEND_AT (RECEIVES * FOREIGN_MESSAGE)

void foreign_open(struct foreign *foreign, const char *write_proof)
{
	memset(foreign, 0, sizeof(*foreign));
	assert_int_equal(setenv("DAT_WRITE_PROOF", write_proof, 1), 0);
	dt_ia_open(&foreign->ia);
	foreign->listener.evd = dt_evd_create(&foreign->ia, 8, DAT_EVD_CR_FLAG);
	dt_ok(dat_psp_create_any(foreign->ia.ia, &foreign->listener.qual, foreign->listener.evd,
				 DAT_PSP_CONSUMER_FLAG, &foreign->listener.psp));
}

void foreign_close(struct foreign *foreign)
{
	if (foreign->child > 0) {
		kill(foreign->child, SIGKILL);
		waitpid(foreign->child, NULL, 0);
	}
	dt_ia_abort(&foreign->ia);
}

/* --- the child --- */

/*
 * siw answers a Read Request in a thread of its own. If the program's last post has not returned
 * from the kernel yet, siw takes that thread for the program: its copy from the program's memory
 * fails (EFAULT, seen with Linux 6.1), and siw ends the connection without a Terminate. That cannot
 * happen if both run on the same processor, the first one (run-in-vm).
 */
static void share_processor_of_siw(void)
{
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	if (sched_setaffinity(0, sizeof(first), &first) < 0)
		perror("sched_setaffinity");
}

void foreign_start(struct foreign *foreign, const char *const *arguments)
{
	fflush(NULL);
	foreign->child = fork();
	assert_true(foreign->child >= 0);
	if (foreign->child)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	share_processor_of_siw();
	execvp(arguments[0], (char *const *)(uintptr_t)arguments);
	perror(arguments[0]);
	_exit(127);
}

void foreign_join(struct foreign *foreign)
{
	int status;

	assert_int_equal(waitpid(foreign->child, &status, 0), foreign->child);
	foreign->child = 0;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

void foreign_choose_port(char text[static 8])
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	close(fd);
	snprintf(text, 8, "%u", ntohs(address.sin_port));
}

/* --- connections --- */

static void post_receive(struct foreign_link *link, uint64_t slot)
{
	post_recv(&link->ep, dt_seg(&link->messages, slot * FOREIGN_MESSAGE, FOREIGN_MESSAGE),
		  slot);
}

void foreign_post_receives(struct foreign_link *link)
{
	for (uint64_t slot = 0; slot < RECEIVES; slot++)
		post_receive(link, slot);
}

void foreign_prepare(struct foreign *foreign, struct foreign_link *link)
{
	dt_ep_create(&foreign->ia, foreign->ia.pz, NULL, &link->ep);
	dt_buf_create(&foreign->ia, foreign->ia.pz, &link->messages, SEND_AT + FOREIGN_MESSAGE,
		      DAT_MEM_PRIV_ALL_FLAG);
}

void foreign_accept(struct foreign *foreign, struct foreign_link *link)
{
	foreign_post_receives(link);
	dt_ok(dat_cr_accept(dt_request(&foreign->listener), link->ep.ep, 0, NULL));
	dt_expect_conn(link->ep.conn, link->ep.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* Until the child listens, the kernel refuses the connection. */
void foreign_connect(struct dt_ep *ep, const char *port)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	const uint64_t end = dt_now_us() + DT_WAIT_US;
	union conn_address address = {.in = {.sin_family = AF_INET}};

	assert_int_equal(inet_pton(AF_INET, FOREIGN_ADDRESS, &address.in.sin_addr), 1);
	for (;;) {
		DAT_EVENT event;

		dt_ok(dat_ep_connect(ep->ep, conn_dat_address(&address), strtoul(port, NULL, 10),
				     DT_WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT,
				     DAT_CONNECT_DEFAULT_FLAG));
		event = dt_event(ep->conn);
		if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
			return;
		assert_int_equal(event.event_number, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		assert_true(dt_now_us() < end);
		dt_ok(dat_ep_reset(ep->ep));
		nanosleep(&pause, NULL);
	}
}

/* --- messages --- */

size_t foreign_take(struct foreign_link *link, uint8_t message[static FOREIGN_MESSAGE])
{
	const DAT_EVENT event = dt_event(link->ep.recv);
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;

	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(dto->status, DAT_DTO_SUCCESS);
	memcpy(message, link->messages.p + dto->user_cookie.as_64 * FOREIGN_MESSAGE,
	       dto->transfered_length);
	post_receive(link, dto->user_cookie.as_64);
	return dto->transfered_length;
}

void foreign_take_all(struct foreign_link *link, uint8_t *message, size_t size)
{
	uint8_t found[FOREIGN_MESSAGE];

	assert_int_equal(foreign_take(link, found), size);
	memcpy(message, found, size);
}

void foreign_give(struct foreign_link *link, const void *message, size_t size)
{
	memcpy(link->messages.p + SEND_AT, message, size);
	post_send(&link->ep, dt_seg(&link->messages, SEND_AT, size), SEND_AT, 0);
	dt_expect_dto(link->ep.request, link->ep.ep, SEND_AT, DAT_DTO_SUCCESS, size);
}
