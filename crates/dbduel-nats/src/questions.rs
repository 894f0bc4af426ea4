//! Questions to programs that listen, and their answers.

use std::time::{Duration, Instant, SystemTime};

use futures_util::StreamExt as _;

use crate::connection::Nats;
use crate::{NatsError, failed};

/// Most answers to one question.
const ANSWERS_MAX: usize = 10_000;

/// A question to one program, and its answer.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// When it was asked, by the wall clock here.
    pub asked: SystemTime,
    /// Time until the answer.
    pub round_trip: Duration,
    /// The answer.
    pub answer: Vec<u8>,
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

    /// Asks one program.
    ///
    /// # Errors
    /// Without an answer, or with none that listens.
    pub fn ask(&self, subject: &str) -> Result<Exchange, NatsError> {
        let action = format!("ask on `{subject}`");
        self.call(&action, async {
            let (asked, from) = (SystemTime::now(), Instant::now());
            let answer = self
                .client
                .request(subject.to_owned(), Vec::new().into())
                .await?;
            Ok::<_, async_nats::RequestError>(Exchange {
                asked,
                round_trip: from.elapsed(),
                answer: answer.payload.into(),
            })
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
