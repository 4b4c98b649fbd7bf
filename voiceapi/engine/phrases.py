"""The sentences that the service speaks by itself, by language; a workflow may replace each of them."""

from collections.abc import Mapping
from typing import Any

DEFAULT_LANGUAGE = "en"
# By primary language subtag, then by name.
PHRASES: Mapping[str, Mapping[str, str]] = {
    "en": {
        # The model failed, and the caller is asked to speak again; or the call ends for it.
        "apology": "I'm sorry, something went wrong on my side. Could you say that again, please?",
        "failure_goodbye": "I have to end the call here. Goodbye.",
        # This service itself failed.
        "service_error": "I'm sorry, something went wrong on our side. Please try again later. Goodbye.",
        # The reply takes longer than the carrier waits.
        "wait": "One moment, please.",
        # Why an inbound call isn't taken.
        "number_not_in_service": "I'm sorry, this number is not in service. Goodbye.",
        "nobody_available": "I'm sorry, nobody can answer this number at the moment. Goodbye.",
        "lines_busy": "I'm sorry, all lines are busy. Please call again later. Goodbye.",
        # Of the scripted model.
        "not_understood": "Sorry, I didn't get that.",
        "still_there": "Are you still there?",
        "silence_goodbye": "I can't hear you, so I'll end the call here. Goodbye.",
    },
    "es": {
        "apology": "Lo siento, ha habido un problema por mi parte. ¿Podría repetirlo, por favor?",
        "failure_goodbye": "Tengo que terminar la llamada aquí. Adiós.",
        "service_error": "Lo sentimos, ha habido un problema por nuestra parte. Vuelva a intentarlo más tarde, por favor. Adiós.",
        "wait": "Un momento, por favor.",
        "number_not_in_service": "Lo sentimos, este número no está en servicio. Adiós.",
        "nobody_available": "Lo sentimos, en este momento nadie puede atender su llamada. Adiós.",
        "lines_busy": "Lo sentimos, todas las líneas están ocupadas. Vuelva a llamar más tarde, por favor. Adiós.",
        "not_understood": "Disculpe, no le he entendido.",
        "still_there": "¿Sigue ahí?",
        "silence_goodbye": "No le oigo, así que voy a terminar la llamada. Adiós.",
    },
    "fr": {
        "apology": "Veuillez m'excuser, j'ai rencontré un problème. Pourriez-vous répéter, s'il vous plaît ?",
        "failure_goodbye": "Je dois mettre fin à l'appel. Au revoir.",
        "service_error": "Veuillez nous excuser, un problème est survenu de notre côté. Merci de réessayer plus tard. Au revoir.",
        "wait": "Un instant, s'il vous plaît.",
        "number_not_in_service": "Veuillez nous excuser, ce numéro n'est pas en service. Au revoir.",
        "nobody_available": "Veuillez nous excuser, personne ne peut prendre votre appel pour le moment. Au revoir.",
        "lines_busy": "Veuillez nous excuser, toutes nos lignes sont occupées. Merci de rappeler plus tard. Au revoir.",
        "not_understood": "Pardon, je n'ai pas compris.",
        "still_there": "Êtes-vous toujours là ?",
        "silence_goodbye": "Je ne vous entends pas, je vais donc mettre fin à l'appel. Au revoir.",
    },
    "de": {
        "apology": "Entschuldigung, bei mir ist etwas schiefgegangen. Könnten Sie das bitte noch einmal sagen?",
        "failure_goodbye": "Ich muss das Gespräch hier leider beenden. Auf Wiederhören.",
        "service_error": "Entschuldigung, bei uns ist ein Fehler aufgetreten. Bitte versuchen Sie es später noch einmal. Auf Wiederhören.",
        "wait": "Einen Moment, bitte.",
        "number_not_in_service": "Diese Rufnummer ist leider nicht in Betrieb. Auf Wiederhören.",
        "nobody_available": "Leider kann im Moment niemand Ihren Anruf entgegennehmen. Auf Wiederhören.",
        "lines_busy": "Leider sind alle Leitungen belegt. Bitte rufen Sie später noch einmal an. Auf Wiederhören.",
        "not_understood": "Entschuldigung, das habe ich nicht verstanden.",
        "still_there": "Sind Sie noch da?",
        "silence_goodbye": "Ich kann Sie leider nicht hören und beende deshalb das Gespräch. Auf Wiederhören.",
    },
    "it": {
        "apology": "Mi scusi, c'è stato un problema da parte mia. Può ripetere, per favore?",
        "failure_goodbye": "Devo terminare qui la chiamata. Arrivederci.",
        "service_error": "Ci scusi, c'è stato un problema da parte nostra. La preghiamo di riprovare più tardi. Arrivederci.",
        "wait": "Un momento, per favore.",
        "number_not_in_service": "Siamo spiacenti, questo numero non è attivo. Arrivederci.",
        "nobody_available": "Siamo spiacenti, al momento nessuno può rispondere alla Sua chiamata. Arrivederci.",
        "lines_busy": "Siamo spiacenti, tutte le linee sono occupate. La preghiamo di richiamare più tardi. Arrivederci.",
        "not_understood": "Mi scusi, non ho capito.",
        "still_there": "È ancora in linea?",
        "silence_goodbye": "Non La sento, quindi termino qui la chiamata. Arrivederci.",
    },
    "pt": {
        "apology": "Desculpe, houve um problema do meu lado. Pode repetir, por favor?",
        "failure_goodbye": "Vou ter de encerrar a chamada aqui. Até logo.",
        "service_error": "Desculpe, houve um problema do nosso lado. Por favor, tente novamente mais tarde. Até logo.",
        "wait": "Um momento, por favor.",
        "number_not_in_service": "Lamentamos, este número não está em serviço. Até logo.",
        "nobody_available": "Lamentamos, no momento ninguém pode atender a sua chamada. Até logo.",
        "lines_busy": "Lamentamos, todas as linhas estão ocupadas. Por favor, ligue mais tarde. Até logo.",
        "not_understood": "Desculpe, não entendi.",
        "still_there": "Ainda está aí?",
        "silence_goodbye": "Não consigo ouvir nada, por isso vou encerrar a chamada. Até logo.",
    },
    "nl": {
        "apology": "Sorry, er ging bij mij iets mis. Kunt u dat alstublieft nog een keer zeggen?",
        "failure_goodbye": "Ik moet het gesprek hier helaas beëindigen. Tot ziens.",
        "service_error": "Sorry, er is bij ons iets misgegaan. Probeert u het later nog eens. Tot ziens.",
        "wait": "Een ogenblik, alstublieft.",
        "number_not_in_service": "Dit nummer is helaas niet in gebruik. Tot ziens.",
        "nobody_available": "Op dit moment kan helaas niemand uw oproep beantwoorden. Tot ziens.",
        "lines_busy": "Helaas zijn alle lijnen bezet. Belt u later alstublieft nog eens. Tot ziens.",
        "not_understood": "Sorry, dat heb ik niet begrepen.",
        "still_there": "Bent u er nog?",
        "silence_goodbye": "Ik hoor u niet, dus ik beëindig het gesprek. Tot ziens.",
    },
    "pl": {
        "apology": "Przepraszam, coś poszło nie tak po mojej stronie. Czy mogę prosić o powtórzenie?",
        "failure_goodbye": "Muszę zakończyć rozmowę. Do widzenia.",
        "service_error": "Przepraszamy, wystąpił problem po naszej stronie. Prosimy spróbować ponownie później. Do widzenia.",
        "wait": "Proszę chwilę zaczekać.",
        "number_not_in_service": "Przepraszamy, ten numer jest nieaktywny. Do widzenia.",
        "nobody_available": "Przepraszamy, w tej chwili nikt nie może odebrać połączenia. Do widzenia.",
        "lines_busy": "Przepraszamy, wszystkie linie są zajęte. Prosimy zadzwonić później. Do widzenia.",
        "not_understood": "Przepraszam, nie rozumiem.",
        "still_there": "Halo, czy nadal mnie słychać?",
        "silence_goodbye": "Nic nie słyszę, więc zakończę rozmowę. Do widzenia.",
    },
    "sv": {
        "apology": "Ursäkta, något gick fel hos mig. Kan du säga det en gång till?",
        "failure_goodbye": "Jag måste tyvärr avsluta samtalet här. Hej då.",
        "service_error": "Tyvärr gick något fel hos oss. Försök gärna igen senare. Hej då.",
        "wait": "Ett ögonblick, tack.",
        "number_not_in_service": "Tyvärr är det här numret inte i bruk. Hej då.",
        "nobody_available": "Tyvärr kan ingen ta emot ditt samtal just nu. Hej då.",
        "lines_busy": "Tyvärr är alla linjer upptagna. Ring gärna igen senare. Hej då.",
        "not_understood": "Ursäkta, det förstod jag inte.",
        "still_there": "Är du kvar?",
        "silence_goodbye": "Jag hör dig inte, så jag avslutar samtalet här. Hej då.",
    },
    "hi": {
        "apology": "माफ़ कीजिए, मेरी ओर से कुछ गड़बड़ी हो गई। कृपया अपनी बात दोबारा कहिए।",
        "failure_goodbye": "मुझे कॉल यहीं समाप्त करनी होगी। नमस्ते।",
        "service_error": "माफ़ कीजिए, हमारी ओर से कुछ गड़बड़ी हो गई। कृपया थोड़ी देर बाद फिर कोशिश कीजिए। नमस्ते।",
        "wait": "कृपया एक क्षण रुकिए।",
        "number_not_in_service": "माफ़ कीजिए, यह नंबर सेवा में नहीं है। नमस्ते।",
        "nobody_available": "माफ़ कीजिए, इस समय आपकी कॉल का उत्तर देने के लिए कोई उपलब्ध नहीं है। नमस्ते।",
        "lines_busy": "माफ़ कीजिए, सभी लाइनें व्यस्त हैं। कृपया थोड़ी देर बाद फिर कॉल कीजिए। नमस्ते।",
        "not_understood": "माफ़ कीजिए, आपकी बात समझ में नहीं आई।",
        "still_there": "क्या आप लाइन पर हैं?",
        "silence_goodbye": "आपकी आवाज़ सुनाई नहीं दे रही है, इसलिए कॉल यहीं समाप्त की जा रही है। नमस्ते।",
    },
    "ja": {
        "apology": "申し訳ございません。こちらで問題が発生しました。もう一度おっしゃっていただけますか？",
        "failure_goodbye": "恐れ入りますが、お電話を終了いたします。失礼いたします。",
        "service_error": "申し訳ございません。こちらのシステムに問題が発生しました。後ほどおかけ直しください。失礼いたします。",
        "wait": "少々お待ちください。",
        "number_not_in_service": "申し訳ございません。おかけになった番号は現在使われておりません。失礼いたします。",
        "nobody_available": "申し訳ございません。ただいま電話に出ることができません。失礼いたします。",
        "lines_busy": "申し訳ございません。ただいま電話が大変混み合っております。後ほどおかけ直しください。失礼いたします。",
        "not_understood": "申し訳ございません。うまく聞き取れませんでした。",
        "still_there": "もしもし、聞こえていらっしゃいますか？",
        "silence_goodbye": "お声が聞こえないようですので、お電話を終了いたします。失礼いたします。",
    },
    "zh": {
        "apology": "抱歉，我这边出了点问题。请您再说一遍，好吗？",
        "failure_goodbye": "很抱歉，通话需要到此结束。再见。",
        "service_error": "很抱歉，我们这边出现了问题。请您稍后再试。再见。",
        "wait": "请稍等。",
        "number_not_in_service": "很抱歉，您拨打的号码暂未启用。再见。",
        "nobody_available": "很抱歉，目前无人能接听您的来电。再见。",
        "lines_busy": "很抱歉，目前所有线路都在忙。请您稍后再拨。再见。",
        "not_understood": "抱歉，我没有听明白。",
        "still_there": "请问您还在吗？",
        "silence_goodbye": "我听不到您的声音，通话就先到这里。再见。",
    },
}
# Languages that have another's phrases: Mandarin and Cantonese, as some carriers write them.
ALIASES: Mapping[str, str] = {"cmn": "zh", "yue": "zh"}


def phrases(configurations: Mapping[str, Any]) -> Mapping[str, str]:
    """The phrases of a workflow with these configurations, by name.

    They are in its `language` (BCP 47), in English where there are none in it; `phrases` of the configurations, texts
    by name, replace them.
    """
    language = configurations.get("language")
    primary = language.strip().split("-")[0].lower() if isinstance(language, str) else ""
    given = configurations.get("phrases")
    own = given if isinstance(given, Mapping) else {}
    known = {**PHRASES[DEFAULT_LANGUAGE], **PHRASES.get(ALIASES.get(primary, primary), {})}
    replaced = {name: text for name, text in own.items() if name in known and isinstance(text, str) and text.strip()}
    return {**known, **replaced}
