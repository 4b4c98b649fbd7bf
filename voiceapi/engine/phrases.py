"""The sentences that the service speaks by itself, by language; a workflow may replace each of them."""

from collections.abc import Mapping
from typing import Any

from .template import as_number

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
        # It still takes long; then these two are said in turn.
        "still_waiting": "I'm still working on it.",
        "long_wait": "Thank you for your patience.",
        # Why an inbound call isn't taken.
        "number_not_in_service": "I'm sorry, this number is not in service. Goodbye.",
        "nobody_available": "I'm sorry, nobody can answer this number at the moment. Goodbye.",
        "lines_busy": "I'm sorry, all lines are busy. Please call again later. Goodbye.",
        # Somebody answers an outbound call whose run has ended, because its carrier had reported nothing.
        "answered_too_late": "This was an automatic call from {caller}, which was cut off. We are sorry to have disturbed you. Goodbye.",
        # Of the scripted model.
        "not_understood": "Sorry, I didn't get that.",
        "yes_or_no": "Please say yes or no.",
        # Before a list of what the caller can say, "Sales, Support or Returns"; "or" is before the last of them.
        "you_can_say": "You can say:",
        "or": "or",
        "not_understood_goodbye": "I'm sorry, I couldn't understand you, so I'll end the call here. Goodbye.",
        # The caller asked for a person: a transfer has failed, or there is none.
        "person_unavailable": "I'm sorry, nobody can take your call at the moment.",
        "person_goodbye": "I'm sorry, I can't put you through to anybody from here, so I'll end the call. Goodbye.",
        "still_there": "Are you still there?",
        "silence_goodbye": "I can't hear you, so I'll end the call here. Goodbye.",
        # The caller wants no more calls.
        "do_not_call_goodbye": "I understand. You won't be called again. Goodbye.",
        # Where the caller may press keys that end with # only, after one of our own sentences.
        "end_keys": "If you use the keypad, please press the hash or pound key at the end.",
    },
    "es": {
        "apology": "Lo siento, ha habido un problema por mi parte. ¿Podría repetirlo, por favor?",
        "failure_goodbye": "Tengo que terminar la llamada aquí. Adiós.",
        "service_error": "Lo sentimos, ha habido un problema por nuestra parte. Vuelva a intentarlo más tarde, por favor. Adiós.",
        "wait": "Un momento, por favor.",
        "still_waiting": "Sigo en ello.",
        "long_wait": "Gracias por su paciencia.",
        "number_not_in_service": "Lo sentimos, este número no está en servicio. Adiós.",
        "nobody_available": "Lo sentimos, en este momento nadie puede atender su llamada. Adiós.",
        "lines_busy": "Lo sentimos, todas las líneas están ocupadas. Vuelva a llamar más tarde, por favor. Adiós.",
        "answered_too_late": "Esta era una llamada automática de {caller} que se ha interrumpido. Disculpe las molestias. Adiós.",
        "not_understood": "Disculpe, no le he entendido.",
        "yes_or_no": "Por favor, diga sí o no.",
        "you_can_say": "Puede decir:",
        "or": "o",
        "not_understood_goodbye": "Lo siento, no he podido entenderle, así que voy a terminar la llamada. Adiós.",
        "person_unavailable": "Lo siento, en este momento nadie puede atenderle.",
        "person_goodbye": "Lo siento, desde aquí no puedo pasarle con nadie, así que voy a terminar la llamada. Adiós.",
        "still_there": "¿Sigue ahí?",
        "silence_goodbye": "No le oigo, así que voy a terminar la llamada. Adiós.",
        "do_not_call_goodbye": "Entendido. No volveremos a llamarle. Adiós.",
        "end_keys": "Si usa el teclado, pulse la tecla almohadilla al terminar.",
    },
    "fr": {
        "apology": "Veuillez m'excuser, j'ai rencontré un problème. Pourriez-vous répéter, s'il vous plaît ?",
        "failure_goodbye": "Je dois mettre fin à l'appel. Au revoir.",
        "service_error": "Veuillez nous excuser, un problème est survenu de notre côté. Merci de réessayer plus tard. Au revoir.",
        "wait": "Un instant, s'il vous plaît.",
        "still_waiting": "Je m'en occupe toujours.",
        "long_wait": "Merci de votre patience.",
        "number_not_in_service": "Veuillez nous excuser, ce numéro n'est pas en service. Au revoir.",
        "nobody_available": "Veuillez nous excuser, personne ne peut prendre votre appel pour le moment. Au revoir.",
        "lines_busy": "Veuillez nous excuser, toutes nos lignes sont occupées. Merci de rappeler plus tard. Au revoir.",
        "answered_too_late": "C'était un appel automatique de {caller}, qui a été interrompu. Veuillez nous excuser de vous avoir dérangé. Au revoir.",
        "not_understood": "Pardon, je n'ai pas compris.",
        "yes_or_no": "Veuillez répondre par oui ou par non.",
        "you_can_say": "Vous pouvez dire :",
        "or": "ou",
        "not_understood_goodbye": "Veuillez m'excuser, je n'ai pas pu vous comprendre, je vais donc mettre fin à l'appel. Au revoir.",
        "person_unavailable": "Veuillez m'excuser, personne ne peut vous répondre pour le moment.",
        "person_goodbye": "Veuillez m'excuser, je ne peux vous mettre en relation avec personne, je vais donc mettre fin à l'appel. Au revoir.",
        "still_there": "Êtes-vous toujours là ?",
        "silence_goodbye": "Je ne vous entends pas, je vais donc mettre fin à l'appel. Au revoir.",
        "do_not_call_goodbye": "C'est noté. Vous ne serez plus appelé. Au revoir.",
        "end_keys": "Si vous utilisez le clavier, appuyez sur la touche dièse pour terminer.",
    },
    "de": {
        "apology": "Entschuldigung, bei mir ist etwas schiefgegangen. Könnten Sie das bitte noch einmal sagen?",
        "failure_goodbye": "Ich muss das Gespräch hier leider beenden. Auf Wiederhören.",
        "service_error": "Entschuldigung, bei uns ist ein Fehler aufgetreten. Bitte versuchen Sie es später noch einmal. Auf Wiederhören.",
        "wait": "Einen Moment, bitte.",
        "still_waiting": "Ich bin noch dabei.",
        "long_wait": "Vielen Dank für Ihre Geduld.",
        "number_not_in_service": "Diese Rufnummer ist leider nicht in Betrieb. Auf Wiederhören.",
        "nobody_available": "Leider kann im Moment niemand Ihren Anruf entgegennehmen. Auf Wiederhören.",
        "lines_busy": "Leider sind alle Leitungen belegt. Bitte rufen Sie später noch einmal an. Auf Wiederhören.",
        "answered_too_late": "Das war ein automatischer Anruf von {caller}, der unterbrochen wurde. Entschuldigen Sie bitte die Störung. Auf Wiederhören.",
        "not_understood": "Entschuldigung, das habe ich nicht verstanden.",
        "yes_or_no": "Bitte sagen Sie Ja oder Nein.",
        "you_can_say": "Sie können sagen:",
        "or": "oder",
        "not_understood_goodbye": "Leider konnte ich Sie nicht verstehen und beende deshalb das Gespräch. Auf Wiederhören.",
        "person_unavailable": "Leider ist im Moment niemand für Sie erreichbar.",
        "person_goodbye": "Leider kann ich Sie von hier aus mit niemandem verbinden und beende deshalb das Gespräch. Auf Wiederhören.",
        "still_there": "Sind Sie noch da?",
        "silence_goodbye": "Ich kann Sie leider nicht hören und beende deshalb das Gespräch. Auf Wiederhören.",
        "do_not_call_goodbye": "Verstanden. Sie werden nicht mehr angerufen. Auf Wiederhören.",
        "end_keys": "Wenn Sie die Tasten benutzen, drücken Sie am Ende bitte die Rautetaste.",
    },
    "it": {
        "apology": "Mi scusi, c'è stato un problema da parte mia. Può ripetere, per favore?",
        "failure_goodbye": "Devo terminare qui la chiamata. Arrivederci.",
        "service_error": "Ci scusi, c'è stato un problema da parte nostra. La preghiamo di riprovare più tardi. Arrivederci.",
        "wait": "Un momento, per favore.",
        "still_waiting": "Ci sto ancora lavorando.",
        "long_wait": "Grazie per la pazienza.",
        "number_not_in_service": "Siamo spiacenti, questo numero non è attivo. Arrivederci.",
        "nobody_available": "Siamo spiacenti, al momento nessuno può rispondere alla Sua chiamata. Arrivederci.",
        "lines_busy": "Siamo spiacenti, tutte le linee sono occupate. La preghiamo di richiamare più tardi. Arrivederci.",
        "answered_too_late": "Questa era una chiamata automatica da {caller}, che si è interrotta. Ci scusiamo per il disturbo. Arrivederci.",
        "not_understood": "Mi scusi, non ho capito.",
        "yes_or_no": "Per favore, dica sì o no.",
        "you_can_say": "Può dire:",
        "or": "o",
        "not_understood_goodbye": "Mi scusi, non riesco a capire, quindi termino qui la chiamata. Arrivederci.",
        "person_unavailable": "Mi dispiace, al momento nessuno può risponderLe.",
        "person_goodbye": "Mi dispiace, da qui non posso metterLa in contatto con nessuno, quindi termino la chiamata. Arrivederci.",
        "still_there": "È ancora in linea?",
        "silence_goodbye": "Non La sento, quindi termino qui la chiamata. Arrivederci.",
        "do_not_call_goodbye": "Ho capito. Non La chiameremo più. Arrivederci.",
        "end_keys": "Se usa la tastiera, alla fine prema il tasto cancelletto.",
    },
    "pt": {
        "apology": "Desculpe, houve um problema do meu lado. Pode repetir, por favor?",
        "failure_goodbye": "Vou ter de encerrar a chamada aqui. Até logo.",
        "service_error": "Desculpe, houve um problema do nosso lado. Por favor, tente novamente mais tarde. Até logo.",
        "wait": "Um momento, por favor.",
        "still_waiting": "Ainda estou a tratar disso.",
        "long_wait": "Agradeço a sua paciência.",
        "number_not_in_service": "Lamentamos, este número não está em serviço. Até logo.",
        "nobody_available": "Lamentamos, no momento ninguém pode atender a sua chamada. Até logo.",
        "lines_busy": "Lamentamos, todas as linhas estão ocupadas. Por favor, ligue mais tarde. Até logo.",
        "answered_too_late": "Esta era uma chamada automática de {caller}, que foi interrompida. Pedimos desculpa pelo incómodo. Até logo.",
        "not_understood": "Desculpe, não entendi.",
        "yes_or_no": "Por favor, diga sim ou não.",
        "you_can_say": "Pode dizer:",
        "or": "ou",
        "not_understood_goodbye": "Desculpe, não consegui entender, por isso vou encerrar a chamada. Até logo.",
        "person_unavailable": "Lamento, no momento ninguém pode atender a sua chamada.",
        "person_goodbye": "Lamento, daqui não posso transferir a sua chamada, por isso vou encerrá-la. Até logo.",
        "still_there": "Ainda está aí?",
        "silence_goodbye": "Não consigo ouvir nada, por isso vou encerrar a chamada. Até logo.",
        "do_not_call_goodbye": "Entendido. Não voltaremos a ligar. Até logo.",
        "end_keys": "Se usar o teclado, prima a tecla cardinal no fim.",
    },
    "nl": {
        "apology": "Sorry, er ging bij mij iets mis. Kunt u dat alstublieft nog een keer zeggen?",
        "failure_goodbye": "Ik moet het gesprek hier helaas beëindigen. Tot ziens.",
        "service_error": "Sorry, er is bij ons iets misgegaan. Probeert u het later nog eens. Tot ziens.",
        "wait": "Een ogenblik, alstublieft.",
        "still_waiting": "Ik ben er nog mee bezig.",
        "long_wait": "Dank u voor uw geduld.",
        "number_not_in_service": "Dit nummer is helaas niet in gebruik. Tot ziens.",
        "nobody_available": "Op dit moment kan helaas niemand uw oproep beantwoorden. Tot ziens.",
        "lines_busy": "Helaas zijn alle lijnen bezet. Belt u later alstublieft nog eens. Tot ziens.",
        "answered_too_late": "Dit was een automatische oproep van {caller}, die is onderbroken. Excuses voor het storen. Tot ziens.",
        "not_understood": "Sorry, dat heb ik niet begrepen.",
        "yes_or_no": "Zegt u alstublieft ja of nee.",
        "you_can_say": "U kunt zeggen:",
        "or": "of",
        "not_understood_goodbye": "Sorry, ik heb u niet begrepen, dus ik beëindig het gesprek. Tot ziens.",
        "person_unavailable": "Op dit moment kan helaas niemand u te woord staan.",
        "person_goodbye": "Ik kan u van hieruit helaas met niemand doorverbinden, dus ik beëindig het gesprek. Tot ziens.",
        "still_there": "Bent u er nog?",
        "silence_goodbye": "Ik hoor u niet, dus ik beëindig het gesprek. Tot ziens.",
        "do_not_call_goodbye": "Begrepen. U wordt niet meer gebeld. Tot ziens.",
        "end_keys": "Als u de toetsen gebruikt, druk dan aan het eind op het hekje.",
    },
    "pl": {
        "apology": "Przepraszam, coś poszło nie tak po mojej stronie. Czy mogę prosić o powtórzenie?",
        "failure_goodbye": "Muszę zakończyć rozmowę. Do widzenia.",
        "service_error": "Przepraszamy, wystąpił problem po naszej stronie. Prosimy spróbować ponownie później. Do widzenia.",
        "wait": "Proszę chwilę zaczekać.",
        "still_waiting": "Jeszcze nad tym pracuję.",
        "long_wait": "Dziękuję za cierpliwość.",
        "number_not_in_service": "Przepraszamy, ten numer jest nieaktywny. Do widzenia.",
        "nobody_available": "Przepraszamy, w tej chwili nikt nie może odebrać połączenia. Do widzenia.",
        "lines_busy": "Przepraszamy, wszystkie linie są zajęte. Prosimy zadzwonić później. Do widzenia.",
        "answered_too_late": "To było automatyczne połączenie od {caller}, które zostało przerwane. Przepraszamy za kłopot. Do widzenia.",
        "not_understood": "Przepraszam, nie rozumiem.",
        "yes_or_no": "Proszę powiedzieć tak lub nie.",
        "you_can_say": "Można powiedzieć:",
        "or": "lub",
        "not_understood_goodbye": "Przepraszam, nie udało mi się zrozumieć, więc zakończę rozmowę. Do widzenia.",
        "person_unavailable": "Przepraszam, w tej chwili nikt nie może odebrać połączenia.",
        "person_goodbye": "Przepraszam, nie mogę stąd z nikim połączyć, więc zakończę rozmowę. Do widzenia.",
        "still_there": "Halo, czy nadal mnie słychać?",
        "silence_goodbye": "Nic nie słyszę, więc zakończę rozmowę. Do widzenia.",
        "do_not_call_goodbye": "Rozumiem. Nie będziemy już dzwonić. Do widzenia.",
        "end_keys": "Jeśli używają Państwo klawiatury, proszę na końcu nacisnąć krzyżyk.",
    },
    "sv": {
        "apology": "Ursäkta, något gick fel hos mig. Kan du säga det en gång till?",
        "failure_goodbye": "Jag måste tyvärr avsluta samtalet här. Hej då.",
        "service_error": "Tyvärr gick något fel hos oss. Försök gärna igen senare. Hej då.",
        "wait": "Ett ögonblick, tack.",
        "still_waiting": "Jag håller fortfarande på.",
        "long_wait": "Tack för ditt tålamod.",
        "number_not_in_service": "Tyvärr är det här numret inte i bruk. Hej då.",
        "nobody_available": "Tyvärr kan ingen ta emot ditt samtal just nu. Hej då.",
        "lines_busy": "Tyvärr är alla linjer upptagna. Ring gärna igen senare. Hej då.",
        "answered_too_late": "Det här var ett automatiskt samtal från {caller} som avbröts. Vi ber om ursäkt för störningen. Hej då.",
        "not_understood": "Ursäkta, det förstod jag inte.",
        "yes_or_no": "Svara ja eller nej, tack.",
        "you_can_say": "Du kan säga:",
        "or": "eller",
        "not_understood_goodbye": "Tyvärr förstod jag inte, så jag avslutar samtalet här. Hej då.",
        "person_unavailable": "Tyvärr kan ingen ta emot ditt samtal just nu.",
        "person_goodbye": "Tyvärr kan jag inte koppla dig till någon härifrån, så jag avslutar samtalet. Hej då.",
        "still_there": "Är du kvar?",
        "silence_goodbye": "Jag hör dig inte, så jag avslutar samtalet här. Hej då.",
        "do_not_call_goodbye": "Jag förstår. Vi ringer dig inte igen. Hej då.",
        "end_keys": "Om du använder knapparna, avsluta med fyrkant.",
    },
    "hi": {
        "apology": "माफ़ कीजिए, मेरी ओर से कुछ गड़बड़ी हो गई। कृपया अपनी बात दोबारा कहिए।",
        "failure_goodbye": "मुझे कॉल यहीं समाप्त करनी होगी। नमस्ते।",
        "service_error": "माफ़ कीजिए, हमारी ओर से कुछ गड़बड़ी हो गई। कृपया थोड़ी देर बाद फिर कोशिश कीजिए। नमस्ते।",
        "wait": "कृपया एक क्षण रुकिए।",
        "still_waiting": "काम अभी चल रहा है।",
        "long_wait": "धैर्य रखने के लिए धन्यवाद।",
        "number_not_in_service": "माफ़ कीजिए, यह नंबर सेवा में नहीं है। नमस्ते।",
        "nobody_available": "माफ़ कीजिए, इस समय आपकी कॉल का उत्तर देने के लिए कोई उपलब्ध नहीं है। नमस्ते।",
        "lines_busy": "माफ़ कीजिए, सभी लाइनें व्यस्त हैं। कृपया थोड़ी देर बाद फिर कॉल कीजिए। नमस्ते।",
        "answered_too_late": "यह {caller} की ओर से एक स्वचालित कॉल थी, जो बीच में रुक गई। असुविधा के लिए खेद है। नमस्ते।",
        "not_understood": "माफ़ कीजिए, आपकी बात समझ में नहीं आई।",
        "yes_or_no": "कृपया हाँ या नहीं कहिए।",
        "you_can_say": "इनमें से कुछ कहिए:",
        "or": "या",
        "not_understood_goodbye": "माफ़ कीजिए, आपकी बात समझ में नहीं आ सकी, इसलिए कॉल यहीं समाप्त की जा रही है। नमस्ते।",
        "person_unavailable": "माफ़ कीजिए, इस समय आपसे बात करने के लिए कोई उपलब्ध नहीं है।",
        "person_goodbye": "माफ़ कीजिए, यहाँ से आपकी बात किसी से नहीं कराई जा सकती, इसलिए कॉल समाप्त की जा रही है। नमस्ते।",
        "still_there": "क्या आप लाइन पर हैं?",
        "silence_goodbye": "आपकी आवाज़ सुनाई नहीं दे रही है, इसलिए कॉल यहीं समाप्त की जा रही है। नमस्ते।",
        "do_not_call_goodbye": "ठीक है। आपको दोबारा कॉल नहीं की जाएगी। नमस्ते।",
        "end_keys": "अगर आप कीपैड का इस्तेमाल करें, तो अंत में हैश दबाइए।",
    },
    "ja": {
        "apology": "申し訳ございません。こちらで問題が発生しました。もう一度おっしゃっていただけますか？",
        "failure_goodbye": "恐れ入りますが、お電話を終了いたします。失礼いたします。",
        "service_error": "申し訳ございません。こちらのシステムに問題が発生しました。後ほどおかけ直しください。失礼いたします。",
        "wait": "少々お待ちください。",
        "still_waiting": "ただいま確認しております。",
        "long_wait": "お待たせして申し訳ございません。",
        "number_not_in_service": "申し訳ございません。おかけになった番号は現在使われておりません。失礼いたします。",
        "nobody_available": "申し訳ございません。ただいま電話に出ることができません。失礼いたします。",
        "lines_busy": "申し訳ございません。ただいま電話が大変混み合っております。後ほどおかけ直しください。失礼いたします。",
        "answered_too_late": "こちらは{caller}からの自動のお電話でしたが、中断されました。お手数をおかけして申し訳ございません。失礼いたします。",
        "not_understood": "申し訳ございません。うまく聞き取れませんでした。",
        "yes_or_no": "「はい」か「いいえ」でお答えください。",
        "you_can_say": "次のようにお答えください：",
        "or": "または",
        "not_understood_goodbye": "申し訳ございません。うまく聞き取れませんでしたので、お電話を終了いたします。失礼いたします。",
        "person_unavailable": "申し訳ございません。ただいま担当者におつなぎできません。",
        "person_goodbye": "申し訳ございません。こちらから担当者におつなぎすることができませんので、お電話を終了いたします。失礼いたします。",
        "still_there": "もしもし、聞こえていらっしゃいますか？",
        "silence_goodbye": "お声が聞こえないようですので、お電話を終了いたします。失礼いたします。",
        "do_not_call_goodbye": "承知しました。今後お電話はいたしません。失礼いたします。",
        "end_keys": "ボタンで入力される場合は、最後にシャープを押してください。",
    },
    "zh": {
        "apology": "抱歉，我这边出了点问题。请您再说一遍，好吗？",
        "failure_goodbye": "很抱歉，通话需要到此结束。再见。",
        "service_error": "很抱歉，我们这边出现了问题。请您稍后再试。再见。",
        "wait": "请稍等。",
        "still_waiting": "我还在处理。",
        "long_wait": "感谢您的耐心等待。",
        "number_not_in_service": "很抱歉，您拨打的号码暂未启用。再见。",
        "nobody_available": "很抱歉，目前无人能接听您的来电。再见。",
        "lines_busy": "很抱歉，目前所有线路都在忙。请您稍后再拨。再见。",
        "answered_too_late": "这是来自{caller}的自动来电，通话已中断。打扰您了，非常抱歉。再见。",
        "not_understood": "抱歉，我没有听明白。",
        "yes_or_no": "请回答是或不是。",
        "you_can_say": "您可以说：",
        "or": "或者",
        "not_understood_goodbye": "很抱歉，我没能听明白，通话就先到这里。再见。",
        "person_unavailable": "很抱歉，目前没有人能接听您的电话。",
        "person_goodbye": "很抱歉，这里无法为您转接其他人，通话就先到这里。再见。",
        "still_there": "请问您还在吗？",
        "silence_goodbye": "我听不到您的声音，通话就先到这里。再见。",
        "do_not_call_goodbye": "明白了，我们不会再给您打电话。再见。",
        "end_keys": "如果您使用按键输入，请在最后按井号键。",
    },
}
# What is said while a reply takes long, in turn; and the limits of how long it may take before that, in seconds.
FILLERS = ("wait", "still_waiting", "long_wait")
SOONEST_FILLER, LATEST_FILLER, FILLER_AFTER = 1.0, 3.5, 2.5
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


def filler_after(configurations: Mapping[str, Any]) -> float:
    """After how many seconds without a reply the caller is first asked to wait."""
    seconds = as_number(configurations.get("filler_after"))
    return FILLER_AFTER if seconds is None else float(min(max(seconds, SOONEST_FILLER), LATEST_FILLER))


def filler(configurations: Mapping[str, Any], given: int) -> str:
    """What is said while a reply takes long, after `given` such sentences in the same turn.

    Of a workflow with sentences of its own only these are said: the others might be in another language.
    """
    known = phrases(configurations)
    usual = phrases({"language": configurations.get("language")})
    own = [known[name] for name in FILLERS if known[name] != usual[name]]
    first, *others = own or [known[name] for name in FILLERS]
    return others[(given - 1) % len(others)] if given and others else first
