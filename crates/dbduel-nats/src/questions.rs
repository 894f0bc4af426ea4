//! Questions to programs that listen, and their answers.

use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant, SystemTime};

use async_nats::Client;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use crate::connection::Nats;
use crate::{NatsError, failed};

/// Most answers to one question.
const ANSWERS_MAX: usize = 10_000;
/// Most questions that wait for a thread to take them.
const WAITING_MAX: usize = 100;
/// Interval between two questions to one program that has not answered the first. Answers do not wait for each other.
const QUESTION_GAP: Duration = Duration::from_millis(2);

/// A question that waits for an answer.
#[derive(Debug)]
pub struct Question {
    /// Content of the question.
    pub payload: Vec<u8>,
    reply: String,
}

/// Questions on a subject, for a thread that answers one after the other.
#[derive(Debug)]
pub struct Questions {
    client: Client,
    received: Receiver<Question>,
}

impl Questions {
    /// The next question, if one arrives within `wait`.
    #[must_use]
    pub fn next(&self, wait: Duration) -> Option<Question> {
        self.received.recv_timeout(wait).ok()
    }

    /// Answers a question. If the answer is lost, the asking program's wait times out.
    pub fn reply(&self, nats: &Nats, question: Question, answer: Vec<u8>) {
        let sent = self.client.publish(question.reply, answer.into());
        let _ = nats.call("answer a question", sent);
    }
}

/// A question to one program, and its answer.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// When it was asked, by the wall clock here.
    pub asked: SystemTime,
    /// When it was asked.
    pub asked_at: Instant,
    /// Time until the answer.
    pub round_trip: Duration,
    /// The answer.
    pub answer: Vec<u8>,
}

async fn exchange(
    client: &Client,
    subject: &str,
    question: Vec<u8>,
) -> Result<Exchange, async_nats::RequestError> {
    let (asked, asked_at) = (SystemTime::now(), Instant::now());
    let answer = client.request(subject.to_owned(), question.into()).await?;
    Ok(Exchange {
        asked,
        asked_at,
        round_trip: asked_at.elapsed(),
        answer: answer.payload.into(),
    })
}

/// Asks one program several times.
async fn exchanges(client: &Client, subject: &str, times: usize, wait: Duration) -> Vec<Exchange> {
    let mut open = FuturesUnordered::new();
    let mut answers = Vec::new();
    for _ in 0..times {
        let asked = exchange(client, subject, Vec::new());
        open.push(tokio::time::timeout(wait, asked));
        if let Ok(answer) = tokio::time::timeout(QUESTION_GAP, open.next()).await {
            answers.push(answer);
        }
    }
    while let Some(answer) = open.next().await {
        answers.push(Some(answer));
    }
    let answers = answers.into_iter().flatten();
    answers.filter_map(|answer| answer.ok()?.ok()).collect()
}

impl Nats {
    /// Answers every question on a subject until the connection is dropped.
    ///
    /// # Errors
    /// When the subject cannot be listened on.
    pub fn answer(
        &self,
        subject: &str,
        answer: impl Fn() -> Vec<u8> + Send + 'static,
    ) -> Result<(), NatsError> {
        let action = format!("listen on `{subject}`");
        let mut questions = self.call(&action, self.client.subscribe(subject.to_owned()))?;
        // Questions that are asked from now on arrive.
        self.call(&action, self.client.flush())?;
        let client = self.client.clone();
        self.spawn(async move {
            while let Some(question) = questions.next().await {
                if let Some(reply) = question.reply {
                    // An answer that is lost ends a bounded wait and nothing else.
                    let _ = client.publish(reply, answer().into()).await;
                }
            }
        });
        Ok(())
    }

    /// Collects questions on a subject until the connection is dropped. At most 100 wait for a thread; further ones are
    /// dropped.
    ///
    /// # Errors
    /// When the subject cannot be listened on.
    pub fn questions(&self, subject: &str) -> Result<Questions, NatsError> {
        let action = format!("listen on `{subject}`");
        let mut asked = self.call(&action, self.client.subscribe(subject.to_owned()))?;
        self.call(&action, self.client.flush())?;
        let (sender, received) = sync_channel(WAITING_MAX);
        self.spawn(async move {
            while let Some(message) = asked.next().await {
                let Some(reply) = message.reply else {
                    continue;
                };
                // One that finds no place is not answered, which its program notices.
                let _ = sender.try_send(Question {
                    payload: message.payload.into(),
                    reply: reply.to_string(),
                });
            }
        });
        Ok(Questions {
            client: self.client.clone(),
            received,
        })
    }

    /// Asks one program.
    ///
    /// # Errors
    /// Without an answer, or when no program listens.
    pub fn ask(&self, subject: &str, question: Vec<u8>) -> Result<Exchange, NatsError> {
        let action = format!("ask on `{subject}`");
        self.call(&action, exchange(&self.client, subject, question))
    }

    /// Asks one program on each of several subjects `times` times, all subjects at the same time. A question is asked
    /// when the one before it is answered, or shortly after that one was asked. Returns the answers that arrive within
    /// `wait`, in the order of the subjects.
    pub fn ask_each(
        &self,
        subjects: &[String],
        times: usize,
        wait: Duration,
    ) -> Vec<Vec<Exchange>> {
        self.run(async {
            let asked = subjects
                .iter()
                .map(|subject| exchanges(&self.client, subject, times, wait));
            futures_util::future::join_all(asked).await
        })
    }

    /// Asks all programs that listen on a subject, and collects what they answer within `wait`.
    ///
    /// # Errors
    /// When the question cannot be sent.
    pub fn ask_all(&self, subject: &str, wait: Duration) -> Result<Vec<Vec<u8>>, NatsError> {
        let action = format!("ask on `{subject}`");
        let _entered = self.enter();
        let inbox = self.client.new_inbox();
        let mut replies = self.call(&action, self.client.subscribe(inbox.clone()))?;
        let question = self
            .client
            .publish_with_reply(subject.to_owned(), inbox, Vec::new().into());
        self.call(&action, question)?;
        self.call(&action, self.client.flush())?;
        let mut answers = Vec::new();
        self.run(async {
            let collected = async {
                while let Some(reply) = replies.next().await {
                    // Without anything that listens, the server itself replies at once.
                    if reply.status.is_some() || answers.len() >= ANSWERS_MAX {
                        break;
                    }
                    answers.push(Vec::from(reply.payload));
                }
            };
            // Until the time is over is how it ends.
            let _ = tokio::time::timeout(wait, collected).await;
            let _ = replies
                .unsubscribe()
                .await
                .map_err(|error| failed(&action, &error));
        });
        Ok(answers)
    }
}
